/**
 * The part of an OpenTelemetry tracer that the client uses, restated: the client depends on no
 * package. https://opentelemetry.io/docs/specs/otel/trace/api/
 *
 * @module
 */

/** The attributes of a span. */
export interface SpanAttributes {
  /** A text, a number, a truth value, or a list of texts. */
  [name: string]: string | number | boolean | string[];
}

/** A span that is being recorded. */
export interface TracerSpan {
  /** Adds attributes. */
  setAttributes(attributes: SpanAttributes): unknown;
  /** Marks the span; 2 is an error. */
  setStatus(status: { code: number }): unknown;
  /** Ends the span. */
  end(): void;
}

/**
 * What makes spans: `trace.getTracer("my-app")` of `npm:@opentelemetry/api` is one.
 */
export interface Tracer {
  /** Starts a span, and calls `work` while it is the active one. */
  startActiveSpan(
    name: string,
    options: { kind: number; attributes: SpanAttributes },
    work: (span: TracerSpan) => void,
  ): unknown;
}
