/**
 * Kills a run at every commit, and judges what becomes of it.
 *
 * The run is done once undisturbed; then once more for every commit and every
 * way to be cut off there, each time taken up again by fresh processes until it
 * is over. All of it happens in virtual time, on your agents, skills, hooks and
 * stores. What must hold is R-1 to R-7: nothing acknowledged is lost, no `write`
 * skill runs twice, the one who lost a run does nothing more, and the journal
 * reads as if nothing had happened. It can be interrupted everywhere as well: then
 * nothing it began may be left behind, either (R-15).
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as RunStore from "../RunStore.ts"
import type { AnySkill } from "../Skill.ts"
import { inOrder, type Order } from "../internal/replay/virtualProcess.ts"
import * as Life from "./internal/crashRun.ts"
import type * as Verdict from "./internal/reliabilityRules.ts"
import type * as Watch from "./internal/watchedProcess.ts"

// ---------------------------------------------------------------- models

/**
 * How a process is cut off at a commit: killed before it is written, killed
 * when it is written but before that is known, killed inside whatever it does
 * next, or stopped before the commit and woken when another has finished the run.
 *
 * @category models
 * @since 0.1.0
 */
export type Way = Watch.Cut["way"]

export type {
  /**
   * Where a process is cut off at a commit, both counted from 1.
   *
   * @category models
   * @since 0.1.0
   */
  Cut,
  /**
   * Where a process is interrupted: before one of its steps, each a stretch in which one fiber runs until it gives way.
   *
   * @category models
   * @since 0.1.0
   */
  Interruption
} from "./internal/watchedProcess.ts"

export type {
  /**
   * What is known of a call that was in flight, for who gives a `verdict` on it.
   *
   * @category models
   * @since 0.1.0
   */
  Known,
  /**
   * What the run is put through, and on what.
   *
   * @category models
   * @since 0.1.0
   */
  Settings,
  /**
   * The run to put through the matrix.
   *
   * @category models
   * @since 0.1.0
   */
  Subject
} from "./internal/crashRun.ts"

/**
 * What must hold.
 *
 * - `R-1`: what was acknowledged is never lost, and the run comes to an end.
 * - `R-2`: what a `write` skill does is begun once, unless a verdict says `retry`.
 * - `R-3`: a call that is made again has the same input.
 * - `R-4`: a call that has its result is not made again.
 * - `R-5`: who lost the run stores nothing and does nothing more.
 * - `R-6`: a commit that is sent again, because nobody heard that it was stored, is a success.
 * - `R-7`: in the end the journal is that of an undisturbed run.
 * - `R-15`: after an interruption nothing is left that was begun.
 *
 * @category models
 * @since 0.1.0
 */
export type Rule = Verdict.Rule

/**
 * A rule that did not hold, and where the run was cut off: nowhere, when it was left alone.
 *
 * @category models
 * @since 0.1.0
 */
export interface Violation {
  readonly rule: Rule
  readonly cuts: ReadonlyArray<Watch.Cut | Watch.Interruption>
  readonly detail: string
}

/**
 * What came of a matrix.
 *
 * @category models
 * @since 0.1.0
 */
export interface Report {
  readonly name: string
  /** Commits of the undisturbed run. */
  readonly commits: number
  /** How many times the run was cut off or interrupted. */
  readonly points: number
  readonly violations: ReadonlyArray<Violation>
}

// ---------------------------------------------------------------- running

/**
 * Puts a run through the matrix.
 *
 * @example
 * const report = yield* CrashMatrix.run({ agent, input: "Pay the bill", layer: MyLayers })
 * assert.deepStrictEqual(report.violations, [])
 *
 * @category running
 * @since 0.1.0
 */
export const run = Effect.fnUntraced(function* <Output, S extends AnySkill<unknown>, R = never, E = never>(
  subject: Life.Subject<Output, S, R>,
  settings: Life.Settings<E> = {}
): Effect.fn.Return<Report, E | RunStore.StoreError> {
  const name = subject.name ?? subject.agent.name
  const undisturbed = yield* Life.live(subject, settings, undefined, [])
  const violations: Array<Violation> = []
  let points = 0
  const cutOff = Effect.fnUntraced(function* (cuts: ReadonlyArray<Watch.Cut | Watch.Interruption>, order?: Order) {
    const life = yield* Life.live(subject, settings, undisturbed, cuts, order)
    // A store that answers at another time may let a run end before the step it was to be interrupted at.
    if (order === undefined || life.interrupted) points++
    for (const { detail, rule } of life.findings) violations.push({ rule, cuts, detail })
    return life
  })
  const commits = undisturbed.commits.reduce((sum, count) => sum + count, 0)
  for (const { detail, rule } of undisturbed.findings) violations.push({ rule, cuts: [], detail })
  // What does not hold undisturbed will not hold anywhere: once is enough.
  if (violations.length > 0) return { name, commits, points, violations }
  for (const [index, count] of undisturbed.commits.entries()) {
    for (const first of cutsOf(index + 1, count, settings.ways ?? Life.ways)) {
      const { commits } = yield* cutOff([first])
      for (const then of cutsOf(index + 2, commits[index + 1] ?? 0, settings.again ?? [])) yield* cutOff([first, then])
    }
  }
  if (settings.interrupts !== undefined) {
    const order = settings.interrupts === "waits" ? () => inOrder : Life.everyOther
    const { findings, steps } =
      settings.interrupts === "waits" ? undisturbed : yield* Life.live(subject, settings, undisturbed, [], order())
    for (const { detail, rule } of findings) violations.push({ rule, cuts: [], detail })
    for (const [index, count] of steps.entries()) {
      for (let step = 1; step <= count && findings.length === 0; step++) {
        yield* cutOff([{ process: index + 1, step, way: "interrupted" }], order())
      }
    }
  }
  return { name, commits, points, violations }
})

const cutsOf = (process: number, commits: number, ways: ReadonlyArray<Way>): ReadonlyArray<Watch.Cut> =>
  Array.from({ length: commits }, (_, index) => index + 1).flatMap((commit) =>
    ways.map((way) => ({ process, commit, way }))
  )

/**
 * A report as text: one line, and one more for each violation.
 *
 * @category formatting
 * @since 0.1.0
 */
export const format = (report: Report): string => {
  const { commits, name, points, violations } = report
  const head = `${name}: ${commits} commits, ${points} points, ${violations.length} violations`
  const where = (cuts: ReadonlyArray<Watch.Cut | Watch.Interruption>) =>
    cuts.length === 0 ? "undisturbed" : cuts.map((cut) => `${cut.way} at ${placeOf(cut)}`).join(", then ")
  return [head, ...violations.map(({ cuts, detail, rule }) => `  ${rule}, ${where(cuts)}: ${detail}`)].join("\n")
}

const placeOf = (cut: Watch.Cut | Watch.Interruption): string =>
  `${cut.way === "interrupted" ? `step ${cut.step}` : `commit ${cut.commit}`} of process ${cut.process}`
