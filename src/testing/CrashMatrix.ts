/**
 * Kills a run at every record it stores, and checks its recovery.
 *
 * The run is executed once undisturbed, and then once for every append and every way to cut it off there. Each time,
 * fresh processes resume it until it ends. Everything happens in virtual time, with your agents, skills, hooks and
 * stores. The rules of `Rule` must hold: no acknowledged record is lost, no `write` skill runs twice, a process that
 * lost the run does nothing more, and the journal equals that of the undisturbed run. A run can also be interrupted
 * everywhere; then nothing it started may be left behind.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as RunStore from "../RunStore.ts"
import type { AnySkill } from "../Skill.ts"
import { inOrder, type Order } from "./internal/replay/virtualProcess.ts"
import * as Life from "./internal/crashRun.ts"
import type * as Verdict from "./internal/reliabilityRules.ts"
import type * as Watch from "./internal/watchedProcess.ts"

// ---------------------------------------------------------------- models

/**
 * How a process is cut off at an append: killed before the write (`before`), killed after the write but before its
 * acknowledgement (`unacknowledged`), killed inside its next action (`after`), or stalled before the append until another
 * process has finished the run (`stalled`).
 *
 * @category models
 * @since 0.1.0
 */
export type Way = Watch.Cut["way"]

export type {
  /**
   * The place where a process is cut off: the number of the process and of its append, both counted from 1.
   *
   * @category models
   * @since 0.1.0
   */
  Cut,
  /**
   * The place where a process is interrupted: before one of its steps. A step lasts until the running fiber yields.
   *
   * @category models
   * @since 0.1.0
   */
  Interruption
} from "./internal/watchedProcess.ts"

export type {
  /**
   * The facts about a call in flight on which a `verdict` can be based.
   *
   * @category models
   * @since 0.1.0
   */
  Known,
  /**
   * The stores, kernels and cuts of a matrix.
   *
   * @category models
   * @since 0.1.0
   */
  Settings,
  /**
   * The run to test.
   *
   * @category models
   * @since 0.1.0
   */
  Subject
} from "./internal/crashRun.ts"

/**
 * The rules that every run must keep.
 *
 * - `nothing_lost`: no acknowledged record is lost, and the run comes to an end.
 * - `writes_once`: a call of a `write` skill starts once, unless a verdict says `retry`.
 * - `same_input`: a call that is made again has the same input.
 * - `results_kept`: a call that has its result is not made again.
 * - `fenced`: a process that lost the run stores nothing and does nothing more.
 * - `append_repeatable`: an append that is repeated after a lost acknowledgement succeeds.
 * - `same_journal`: the final journal equals that of an undisturbed run. After a crash, background calls may end in
 *   another order: then their results, which arrive once, and the answer are compared.
 * - `nothing_left`: an interruption leaves nothing running.
 *
 * @category models
 * @since 0.1.0
 */
export type Rule = Verdict.Rule

/**
 * A broken rule, and the places where the run was cut off. Without cuts, the undisturbed run broke it.
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
 * The result of a matrix.
 *
 * @category models
 * @since 0.1.0
 */
export interface Report {
  readonly name: string
  /** Number of appends of the undisturbed run. */
  readonly commits: number
  /** Number of times the run was cut off or interrupted. */
  readonly points: number
  readonly violations: ReadonlyArray<Violation>
}

// ---------------------------------------------------------------- running

/**
 * Runs the matrix and returns its report.
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
    // A store may respond at another time, so the run may end before the step of its interruption.
    if (order === undefined || life.interrupted) points++
    for (const { detail, rule } of life.findings) violations.push({ rule, cuts, detail })
    return life
  })
  const commits = undisturbed.commits.reduce((sum, count) => sum + count, 0)
  for (const { detail, rule } of undisturbed.findings) violations.push({ rule, cuts: [], detail })
  // A rule broken by the undisturbed run would be broken everywhere, so it is reported once.
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
 * Formats a report as text: one line, and one more for each violation.
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
