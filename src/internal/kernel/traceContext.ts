/** The trace in which a run was started. Every attempt of the run continues it, in any process. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import { spanOf, traceparent } from "../../kit/traceparent.ts"

/**
 * Returns the current span as a `traceparent`, as it is stored with a run. Where this process traces nothing, returns the
 * span of another process that the current request belongs to.
 */
export const current = (context: Context.Context<never>, isTraced: boolean): string | undefined => {
  let span: Tracer.AnySpan | undefined = Context.getOrUndefined(context, Tracer.ParentSpan)
  while (!isTraced && span?._tag === "Span") span = Option.getOrUndefined(span.parent)
  return span === undefined ? undefined : traceparent(span)
}

/**
 * Runs an attempt as a child of the span that started its run. An attempt that belongs to a span of its own stays there,
 * unless a driver makes it: what woke the driver is not part of the run.
 */
export const inTrace = <A, E, R>(
  trace: string | undefined,
  isDriven: boolean,
  attempt: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const span = trace === undefined ? undefined : spanOf(trace)
  if (span === undefined) return attempt
  return Effect.withFiber(({ context }) =>
    isDriven || Context.getOrUndefined(context, Tracer.ParentSpan) === undefined
      ? Effect.provideService(attempt, Tracer.ParentSpan, span)
      : attempt
  )
}
