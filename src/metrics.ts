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
  /**
   * A tool call. A suspension is no error: it has `pending: true`. The source of a tool that there is
   * not is `unknown`.
   */
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

/** How many durations fell between each bound and the one before, and behind the last. */
interface Histogram {
  counts: number[];
  sum: number;
}

/** Values by the labels they belong to, in the order of the labels' names. */
class Series<Value> {
  readonly #values = new Map<string, { labels: readonly string[]; value: Value }>();

  /** The entry of these labels; `create` makes its first value. */
  entry(labels: readonly string[], create: () => Value): { value: Value } {
    const key = labels.length === 1 ? labels[0]! : JSON.stringify(labels);
    let entry = this.#values.get(key);
    if (entry === undefined) this.#values.set(key, entry = { labels, value: create() });
    return entry;
  }

  /** Every value with its labels as text, in a stable order. */
  *sorted(names: readonly string[]): Generator<[labels: string, value: Value]> {
    for (const key of [...this.#values.keys()].sort()) {
      const { labels, value } = this.#values.get(key)!;
      yield [names.map((name, index) => `${name}="${escaped(labels[index]!)}"`).join(","), value];
    }
  }
}

/**
 * Counts events. The text is Prometheus' exposition format 0.0.4:
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 */
export class Metrics {
  readonly #llmRequests = new Series<number>();
  readonly #llmTokens = new Series<number>();
  readonly #llmSeconds = new Series<Histogram>();
  readonly #toolCalls = new Series<number>();
  readonly #toolSeconds = new Series<Histogram>();
  readonly #runErrors = new Series<number>();

  record(event: MetricEvent): void {
    if (event.event === "llm") {
      const { model, status, ms } = event;
      add(this.#llmRequests, [model, status], 1);
      if (status === "ok") {
        add(this.#llmTokens, ["prompt"], event.promptTokens);
        add(this.#llmTokens, ["completion"], event.completionTokens);
      }
      observe(this.#llmSeconds, [model], ms / 1000);
    } else if (event.event === "tool") {
      const { source, isError, ms } = event;
      // There is no end to the names that a model can make up: they are one label.
      // Half a character has no UTF-8: names that differ in one alone are one.
      const tool = source === "unknown" ? "unknown" : event.tool.toWellFormed();
      add(this.#toolCalls, [tool, source, String(isError)], 1);
      observe(this.#toolSeconds, [tool], ms / 1000);
    } else if (event.error !== undefined) add(this.#runErrors, [event.model], 1);
  }

  /** The counters and histograms as text; always valid, in a stable order. */
  text(): string {
    return [
      ...counter(
        "toolnexus_llm_requests_total",
        "Requests to the model.",
        ["model", "status"],
        this.#llmRequests,
      ),
      ...counter("toolnexus_llm_tokens_total", "Tokens used.", ["type"], this.#llmTokens),
      ...histogram(
        "toolnexus_llm_request_duration_seconds",
        "Duration of requests to the model.",
        ["model"],
        this.#llmSeconds,
      ),
      ...counter(
        "toolnexus_tool_calls_total",
        "Tool calls.",
        ["tool", "source", "is_error"],
        this.#toolCalls,
      ),
      ...histogram(
        "toolnexus_tool_duration_seconds",
        "Duration of tool calls.",
        ["tool"],
        this.#toolSeconds,
      ),
      ...counter("toolnexus_run_errors_total", "Failed runs.", ["model"], this.#runErrors),
    ].join("\n") + "\n";
  }
}

function add(series: Series<number>, labels: readonly string[], amount: number): void {
  series.entry(labels, () => 0).value += amount;
}

function observe(series: Series<Histogram>, labels: readonly string[], seconds: number): void {
  const create = () => ({ counts: new Array<number>(BUCKETS.length + 1).fill(0), sum: 0 });
  const histogram = series.entry(labels, create).value;
  const bucket = BUCKETS.findIndex((bound) => seconds <= bound);
  histogram.counts[bucket < 0 ? BUCKETS.length : bucket]!++;
  histogram.sum += seconds;
}

function escaped(value: string): string {
  return value.toWellFormed().replaceAll("\\", "\\\\").replaceAll('"', '\\"')
    .replaceAll("\n", "\\n");
}

function* counter(
  name: string,
  help: string,
  labelNames: readonly string[],
  series: Series<number>,
): Generator<string> {
  yield `# HELP ${name} ${help}`;
  yield `# TYPE ${name} counter`;
  for (const [labels, value] of series.sorted(labelNames)) yield `${name}{${labels}} ${value}`;
}

function* histogram(
  name: string,
  help: string,
  labelNames: readonly string[],
  series: Series<Histogram>,
): Generator<string> {
  yield `# HELP ${name} ${help}`;
  yield `# TYPE ${name} histogram`;
  for (const [labels, { counts, sum }] of series.sorted(labelNames)) {
    let count = 0;
    for (const [index, bound] of [...BUCKETS, "+Inf"].entries()) {
      count += counts[index]!;
      yield `${name}_bucket{${labels},le="${bound}"} ${count}`;
    }
    yield `${name}_sum{${labels}} ${sum}`;
    yield `${name}_count{${labels}} ${count}`;
  }
}
