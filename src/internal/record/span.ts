/**
 * Puts a span and a duration metric around an effect.
 *
 * Nothing here changes the result, the failure or the interruption of the effect. A span names the kind of failure; it
 * shows the text of a failure only where that text is known to hold no secrets.
 */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import type * as Tracer from "effect/Tracer"
import { field, hasTag, isA, reasonIn, tagOf } from "../base/foreignCode.ts"
import { names } from "./genAi.ts"

/** Values of span attributes; those that are undefined are left out. */
export type Attributes = { readonly [name: string]: string | number | boolean | ReadonlyArray<string> | undefined }

type Histogram = Metric.Histogram<number>

/** Adds to a span at the end of an effect. */
export interface Told {
  readonly add: (attributes: Attributes) => void
  /** The effect succeeded with a value that describes a failure. */
  readonly failed: (type: string) => void
  readonly count: (metric: Histogram, value: number, more?: { readonly [name: string]: string }) => void
}

/** What is measured, and how. */
export interface Measure<A> {
  readonly name: string
  readonly kind: Tracer.SpanKind
  readonly attributes: Attributes
  /** Receives the duration in seconds. */
  readonly metric: Histogram
  /** The attributes that the metrics have, too. They have few values each. */
  readonly dimensions: ReadonlyArray<string>
  /** Whether the text of a typed failure may be shown. */
  readonly showsFailures: boolean
  readonly outcome: (value: A, told: Told) => void
}

/** Measures an effect. */
export const measured = <A, E, R>(effect: Effect.Effect<A, E, R>, measure: Measure<A>): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.withFiber((fiber) => {
      const clock = fiber.getRef(Clock.Clock)
      const { context } = fiber
      const options = { kind: measure.kind, attributes: present(measure.attributes), captureStackTrace: false }
      return Effect.flatMap(Effect.makeSpan(measure.name, options), (span) => {
        const started = clock.currentTimeNanosUnsafe()
        return Effect.onExit(restore(Effect.withParentSpan(effect, span, { captureStackTrace: false })), (exit) =>
          Effect.sync(() => finish(measure, exit, { span, context, started, ended: clock.currentTimeNanosUnsafe() }))
        )
      })
    })
  )

interface End {
  readonly span: Tracer.Span
  readonly context: Context.Context<never>
  readonly started: bigint
  readonly ended: bigint
}

const finish = <A, E>(measure: Measure<A>, exit: Exit.Exit<A, E>, end: End): void => {
  const { context, ended, span, started } = end
  const dimensions: { [name: string]: string } = {}
  for (const name of measure.dimensions) {
    const value = measure.attributes[name]
    if (value !== undefined) dimensions[name] = String(value)
  }
  let failure: string | undefined
  const told: Told = {
    add: (attributes) => annotate(span, attributes),
    failed: (type) => {
      failure = type
    },
    count: (metric, value, more) =>
      Metric.withAttributes(metric, { ...dimensions, ...more }).updateUnsafe(value, context)
  }
  try {
    if (Exit.isSuccess(exit)) measure.outcome(exit.value, told)
    else if (isPause(exit.cause)) annotate(span, { [names.paused]: true })
    else failure = errorType(exit.cause)
    if (failure !== undefined) annotate(span, { [names.errorType]: failure })
    const seconds = Number(ended - started) / 1e9
    told.count(measure.metric, seconds, failure === undefined ? {} : { [names.errorType]: failure })
  } catch {
    // An exporter or a function that throws must not end a run.
  }
  span.end(ended, shown(exit, failure, measure.showsFailures))
}

/** The exit that the span reports: a pause is not a failure, and foreign texts and defects are named only. */
const shown = <A, E>(
  exit: Exit.Exit<A, E>,
  failure: string | undefined,
  showsFailures: boolean
): Exit.Exit<unknown, unknown> => {
  if (failure === undefined) return Exit.void
  if (Exit.isFailure(exit)) {
    if (Cause.hasInterruptsOnly(exit.cause)) return exit
    if (showsFailures && !Cause.hasDies(exit.cause)) return exit
  }
  return Exit.fail(failure)
}

/** One word of low cardinality for the failure. */
const errorType = (cause: Cause.Cause<unknown>): string => {
  if (Cause.hasInterruptsOnly(cause)) return "interrupted"
  const error = reasonIn(cause)
  const reason = field(error, "reason")
  if (typeof reason === "string" && /^[a-z_]{1,40}$/.test(reason)) return reason
  const tag = tagOf(error)
  return tag === "Error" && !isA(error, Error) ? "_OTHER" : tag
}

const isPause = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isFailReason(reason) && hasTag(reason.error, "RunPaused"))

const annotate = (span: Tracer.Span, attributes: Attributes): void => {
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) span.attribute(name, value)
}

const present = (attributes: Attributes): Record<string, unknown> =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
