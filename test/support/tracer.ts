/** Tracers that keep their spans, and the span of a caller. */
import { Layer, Option, Tracer } from "effect"

/** The span of a caller. */
export const traceId = "0af7651916cd43dd8448eb211c80319c"
export const spanId = "b7ad6b7169203331"
export const traceparent = `00-${traceId}-${spanId}-01`

/** A tracer that keeps its spans. */
export const tracer = () => {
  const spans: Array<Tracer.NativeSpan> = []
  const made = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, layer: Layer.succeed(Tracer.Tracer, made) }
}

/** The spans of runs, in the order of their start. */
export const agentsIn = (spans: ReadonlyArray<Tracer.NativeSpan>) =>
  spans.filter(({ name }) => name.startsWith("invoke_agent"))

/** The id of the span above. */
export const parentOf = ({ parent }: Tracer.NativeSpan) => Option.getOrUndefined(parent)?.spanId

export const caller = Tracer.externalSpan({ traceId, spanId, sampled: true })
