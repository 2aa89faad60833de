/**
 * What happens in a client, as events and as Prometheus text.
 *
 * @module
 */

/** An event of the client's work. Durations are in milliseconds. */
export type MetricEvent =
  /** A request to the model, retries included. */
  | {
    event: "llm";
    model: string;
    status: "ok" | "error";
    ms: number;
    promptTokens: number;
    completionTokens: number;
  }
  /** A tool call. A suspension is no error: it has `pending: true`. */
  | { event: "tool"; tool: string; source: string; isError: boolean; ms: number; pending?: true }
  /** A run. */
  | {
    event: "run";
    model: string;
    turns: number;
    toolCalls: number;
    totalTokens: number;
    ms: number;
    error?: string;
  };

/** Upper bounds of the histograms' buckets, in seconds; the same in every port. */
const BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

interface Histogram {
  buckets: number[];
  sum: number;
  count: number;
}

/**
 * Counts events. The text is Prometheus' exposition format 0.0.4:
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 */
export class Metrics {
  readonly #llmRequests = new Map<string, number>();
  readonly #llmTokens = new Map<string, number>();
  readonly #llmSeconds = new Map<string, Histogram>();
  readonly #toolCalls = new Map<string, number>();
  readonly #toolSeconds = new Map<string, Histogram>();
  readonly #runErrors = new Map<string, number>();

  record(event: MetricEvent): void {
    if (event.event === "llm") {
      const { model, status, ms } = event;
      add(this.#llmRequests, labels({ model, status }), 1);
      if (status === "ok") {
        add(this.#llmTokens, labels({ type: "prompt" }), event.promptTokens);
        add(this.#llmTokens, labels({ type: "completion" }), event.completionTokens);
      }
      observe(this.#llmSeconds, labels({ model }), ms / 1000);
    } else if (event.event === "tool") {
      const { tool, source, isError, ms } = event;
      add(this.#toolCalls, labels({ tool, source, is_error: String(isError) }), 1);
      observe(this.#toolSeconds, labels({ tool }), ms / 1000);
    } else if (event.error !== undefined) {
      add(this.#runErrors, labels({ model: event.model }), 1);
    }
  }

  /** The counters and histograms as text; always valid, in a stable order. */
  text(): string {
    return [
      ...counter("toolnexus_llm_requests_total", "Requests to the model.", this.#llmRequests),
      ...counter("toolnexus_llm_tokens_total", "Tokens used.", this.#llmTokens),
      ...histogram(
        "toolnexus_llm_request_duration_seconds",
        "Duration of requests to the model.",
        this.#llmSeconds,
      ),
      ...counter("toolnexus_tool_calls_total", "Tool calls.", this.#toolCalls),
      ...histogram("toolnexus_tool_duration_seconds", "Duration of tool calls.", this.#toolSeconds),
      ...counter("toolnexus_run_errors_total", "Failed runs.", this.#runErrors),
    ].join("\n") + "\n";
  }
}

function add(series: Map<string, number>, key: string, amount: number): void {
  series.set(key, (series.get(key) ?? 0) + amount);
}

function observe(series: Map<string, Histogram>, key: string, seconds: number): void {
  let histogram = series.get(key);
  if (histogram === undefined) {
    histogram = { buckets: BUCKETS.map(() => 0), sum: 0, count: 0 };
    series.set(key, histogram);
  }
  const { buckets } = histogram;
  BUCKETS.forEach((bound, index) => {
    if (seconds <= bound) buckets[index]!++;
  });
  histogram.sum += seconds;
  histogram.count++;
}

function labels(pairs: Record<string, string>): string {
  return Object.entries(pairs).map(([name, value]) => `${name}="${escaped(value)}"`).join(",");
}

function escaped(value: string): string {
  return value.toWellFormed().replaceAll("\\", "\\\\").replaceAll('"', '\\"')
    .replaceAll("\n", "\\n");
}

function* counter(name: string, help: string, series: Map<string, number>): Generator<string> {
  yield `# HELP ${name} ${help}`;
  yield `# TYPE ${name} counter`;
  for (const key of [...series.keys()].sort()) yield `${name}{${key}} ${series.get(key)}`;
}

function* histogram(name: string, help: string, series: Map<string, Histogram>): Generator<string> {
  yield `# HELP ${name} ${help}`;
  yield `# TYPE ${name} histogram`;
  for (const key of [...series.keys()].sort()) {
    const { buckets, sum, count } = series.get(key)!;
    for (const [index, bound] of BUCKETS.entries()) {
      yield `${name}_bucket{${key},le="${bound}"} ${buckets[index]}`;
    }
    yield `${name}_bucket{${key},le="+Inf"} ${count}`;
    yield `${name}_sum{${key}} ${sum}`;
    yield `${name}_count{${key}} ${count}`;
  }
}
