/**
 * Measures how often the answers to many questions are right.
 *
 * An evaluation asks every case of a data set, once or several times, and passes each answer to its scorers. An attempt
 * passes if it has an answer and every scorer passes it. A model that fails is a failed attempt, not an error of the
 * evaluation. The pass rate has an interval, because a few attempts prove little.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../kit/json.ts"
import { addCost, type Usage } from "../Usage.ts"

// ---------------------------------------------------------------- models

/**
 * One question of a data set.
 *
 * @category models
 * @since 0.1.0
 */
export interface Case {
  readonly id: string
  readonly input: string
  /** The expected answer: a text, a list of texts for `contains`, or JSON. */
  readonly expected?: Schema.Json | undefined
  /** The other fields of its row, for scorers of your own. */
  readonly fields?: JsonObject | undefined
}

/**
 * The answer to a case. A `RunResult` is one.
 *
 * @category models
 * @since 0.1.0
 */
export interface Answer {
  readonly text: string
  readonly turns?: number | undefined
  readonly usage?: Usage | null | undefined
  readonly costUsd?: number | undefined
  /** Known problems of the answer, independent of the scorers. */
  readonly problems?: ReadonlyArray<string> | undefined
}

/**
 * The judgement of a scorer: a score from 0 to 1, and whether it passes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Verdict {
  readonly score: number
  readonly isPass: boolean
  readonly reason?: string | undefined
}

/**
 * Judges answers. Create one with `scorer`, or use `exact`, `contains`, `regex`, `schema`, `similarity` or `judge`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Scorer<out R = never> {
  readonly name: string
  /** A failure fails the attempt, with its message as the reason. */
  readonly score: (answer: Answer, question: Case) => Effect.Effect<Verdict, { readonly message: string }, R>
}

/**
 * One answer to a case with the verdicts of the scorers. `error`: there is no answer. `skipped`: the case could not be
 * asked here, and does not count.
 *
 * @category models
 * @since 0.1.0
 */
export interface Attempt {
  readonly caseId: string
  /** Counts from 1. */
  readonly attempt: number
  readonly outcome: "passed" | "failed" | "error" | "skipped"
  readonly answer: string | null
  /** The reason why it did not pass. */
  readonly reason: string | null
  readonly scores: ReadonlyArray<Verdict & { readonly scorer: string }>
  readonly turns: number | null
  readonly usage: Usage | null
  /** US dollars. Null where no price is known. */
  readonly costUsd: number | null
  readonly durationMs: number
}

/**
 * The result of an evaluation. `passRate` and `interval` are of the attempts that were not skipped.
 *
 * @category models
 * @since 0.1.0
 */
export interface Report {
  readonly startedAt: number
  readonly finishedAt: number
  readonly attempts: number
  readonly passed: number
  readonly skipped: number
  readonly passRate: number
  /** The 95% interval of the pass rate. */
  readonly interval: readonly [low: number, high: number]
  readonly scorers: ReadonlyArray<{ readonly name: string; readonly mean: number; readonly passRate: number }>
  /** US dollars of the attempts whose price is known. Null if none is. */
  readonly costUsd: number | null
  readonly cases: ReadonlyArray<Case & { readonly attempts: ReadonlyArray<Attempt> }>
}

/**
 * Fails a case that cannot be asked here, because something it needs is missing.
 *
 * @category errors
 * @since 0.1.0
 */
export class CaseSkipped extends Schema.TaggedError<CaseSkipped>()("CaseSkipped", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

/**
 * The result of the function of a scorer.
 *
 * @category models
 * @since 0.1.0
 */
export type Judged = boolean | number | { readonly score: number; readonly reason?: string | undefined }

// ---------------------------------------------------------------- scorers

export {
  /**
   * Creates a scorer from a function that returns whether an answer passes, or a score from 0 to 1, or a score with its
   * reason; or an Effect of one. A score passes from `passAt` (default: 1).
   *
   * @example
   * const isShort = Evaluation.scorer("short", ({ text }) => text.length <= 100)
   *
   * @category scorers
   * @since 0.1.0
   */
  scorer,
  /**
   * Passes an answer that equals the expected one, ignoring white space at both ends. An expected value that is not
   * text is compared with the answer as JSON.
   *
   * @category scorers
   * @since 0.1.0
   */
  exact,
  /**
   * Passes an answer that contains the expected text, or all expected texts. The score is the share of texts that it
   * contains.
   *
   * @category scorers
   * @since 0.1.0
   */
  contains,
  /**
   * Passes an answer in which a regular expression matches: this one, or by default the expected text of each case.
   * Matching takes linear time, so lookaround and backreferences are rejected.
   *
   * @category scorers
   * @since 0.1.0
   */
  regex,
  /**
   * Passes an answer that is JSON of a schema.
   *
   * @category scorers
   * @since 0.1.0
   */
  schema,
  /**
   * Passes an answer that is similar to the expected one, by the share of common pairs of adjacent characters (Dice's
   * coefficient), ignoring case and white space. Passes from 0.8 by default.
   *
   * @category scorers
   * @since 0.1.0
   */
  similarity,
  /**
   * Asks another model how good an answer is. The judge sees the question, the expected answer if there is one, and the
   * answer as data; its score passes from `passAt` (default: 0.5).
   *
   * @category scorers
   * @since 0.1.0
   */
  judge
} from "./internal/evaluationScorers.ts"

// ---------------------------------------------------------------- running

/**
 * Options of an evaluation.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out E extends { readonly message: string }, out R, out S> {
  readonly cases: ReadonlyArray<Case>
  /** Answers a case. A failure is an attempt without an answer; `CaseSkipped` skips it. */
  readonly ask: (question: Case) => Effect.Effect<Answer, E, R>
  /** Without one, every answer without `problems` passes. */
  readonly scorers: ReadonlyArray<Scorer<S>>
  /** Attempts for each case. Default: 1. */
  readonly repeats?: number | undefined
  /** Attempts at once. Default: 1. */
  readonly concurrency?: number | undefined
  /** Called with each attempt when it has ended. */
  readonly onAttempt?: ((attempt: Attempt) => Effect.Effect<void>) | undefined
}

/**
 * Asks all cases and returns the report.
 *
 * @example
 * const report = yield* Evaluation.run({
 *   cases: [{ id: "norway", input: "What is the capital of Norway?", expected: "Oslo" }],
 *   ask: ({ input }) => Kernel.run(agent, input),
 *   scorers: [Evaluation.contains],
 *   repeats: 5
 * })
 *
 * @category running
 * @since 0.1.0
 */
export const run = Effect.fnUntraced(function* <E extends { readonly message: string }, R, S = never>(
  options: Options<E, R, S>
): Effect.fn.Return<Report, never, R | S> {
  const { cases, concurrency = 1, onAttempt = () => Effect.void, repeats = 1, scorers } = options
  const startedAt = yield* Clock.currentTimeMillis
  const planned = cases.flatMap((question, index) =>
    Array.from({ length: repeats }, (_, attempt) => ({ question, index, attempt: attempt + 1 }))
  )
  const attempts = yield* Effect.forEach(
    planned,
    ({ attempt, index, question }) =>
      attemptOf(options, question, attempt).pipe(
        Effect.tap(onAttempt),
        Effect.map((attempt) => ({ attempt, index }))
      ),
    { concurrency }
  )
  const finishedAt = yield* Clock.currentTimeMillis
  const all = attempts.map(({ attempt }) => attempt)
  return {
    startedAt,
    finishedAt,
    ...summaryOf(all),
    scorers: scorers.map(({ name }) => scorerSummary(name, all)),
    cases: cases.map((question, index) => ({
      ...question,
      attempts: attempts.flatMap((one) => (one.index === index ? [one.attempt] : []))
    }))
  }
})

const attemptOf = Effect.fnUntraced(function* <E extends { readonly message: string }, R, S>(
  { ask, scorers }: Options<E, R, S>,
  question: Case,
  attempt: number
): Effect.fn.Return<Attempt, never, R | S> {
  const startedAt = yield* Clock.currentTimeMillis
  const asked = yield* Effect.result(ask(question))
  const answer = Result.isSuccess(asked) ? asked.success : undefined
  const scores =
    answer === undefined ? [] : yield* Effect.forEach(scorers, (scorer) => scoreOf(scorer, answer, question))
  const problems = [
    ...(Result.isFailure(asked) ? [asked.failure.message] : (asked.success.problems ?? [])),
    ...scores.flatMap(({ isPass, reason, score, scorer }) =>
      isPass ? [] : [`${scorer}: ${reason ?? `score ${Math.round(score * 100) / 100}`}`]
    )
  ]
  const outcome = Result.isFailure(asked) ? (asked.failure instanceof CaseSkipped ? "skipped" : "error") : undefined
  return {
    caseId: question.id,
    attempt,
    outcome: outcome ?? (problems.length === 0 ? "passed" : "failed"),
    answer: answer?.text ?? null,
    reason: problems.length === 0 ? null : problems.join("; "),
    scores,
    turns: answer?.turns ?? null,
    usage: answer?.usage ?? null,
    costUsd: answer?.costUsd ?? null,
    durationMs: (yield* Clock.currentTimeMillis) - startedAt
  }
})

const scoreOf = <S>({ name, score }: Scorer<S>, answer: Answer, question: Case) =>
  score(answer, question).pipe(
    Effect.catch(({ message }) => Effect.succeed<Verdict>({ score: 0, isPass: false, reason: message })),
    Effect.map((verdict) => ({ scorer: name, ...verdict }))
  )

const summaryOf = (attempts: ReadonlyArray<Attempt>) => {
  const asked = attempts.filter(({ outcome }) => outcome !== "skipped")
  const passed = asked.filter(({ outcome }) => outcome === "passed").length
  return {
    attempts: attempts.length,
    passed,
    skipped: attempts.length - asked.length,
    passRate: share(passed, asked.length),
    interval: interval(passed, asked.length),
    costUsd:
      attempts.reduce<number | undefined>((sum, { costUsd }) => addCost(sum, costUsd ?? undefined), undefined) ?? null
  }
}

const scorerSummary = (name: string, attempts: ReadonlyArray<Attempt>) => {
  const scores = attempts.flatMap(({ scores }) => scores.filter(({ scorer }) => scorer === name))
  const total = scores.reduce((sum, { score }) => sum + score, 0)
  return {
    name,
    mean: share(total, scores.length),
    passRate: share(scores.filter(({ isPass }) => isPass).length, scores.length)
  }
}

const share = (part: number, of: number): number => (of === 0 ? 0 : part / of)

/**
 * Returns the 95% interval of a rate: Wilson's score interval, which also holds for few attempts and for rates near 0
 * or 1. Without attempts it is 0 to 1.
 *
 * @category getters
 * @since 0.1.0
 */
export const interval = (passed: number, of: number): readonly [low: number, high: number] => {
  if (of === 0) return [0, 1]
  const z = 1.959964
  const rate = passed / of
  const spread = z * Math.sqrt((rate * (1 - rate)) / of + (z * z) / (4 * of * of))
  const scale = 1 + (z * z) / of
  const centre = rate + (z * z) / (2 * of)
  return [Math.max(0, (centre - spread) / scale), Math.min(1, (centre + spread) / scale)]
}
