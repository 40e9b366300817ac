/** Spans as W3C `traceparent` texts. */

import * as Tracer from "effect/Tracer"

/** Returns a span as a `traceparent`. */
export const traceparent = ({ sampled, spanId, traceId }: Tracer.AnySpan): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`

/** Returns the span of a `traceparent`, or undefined for another text. */
export const spanOf = (text: string): Tracer.ExternalSpan | undefined => {
  const [, traceId, spanId, flags] = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/.exec(text) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return Tracer.externalSpan({ traceId, spanId, sampled: (parseInt(flags, 16) & 1) === 1 })
}
