/**
 * Kills a run at every record it stores, and checks what becomes of it.
 *
 * The run is executed once undisturbed, and then once for every append and every way to be cut off there. Each time,
 * fresh processes resume it until it ends. Everything happens in virtual time, on your agents, skills, hooks and
 * stores. The rules of `Rule` must hold: no acknowledged record is lost, no `write` skill runs twice, a process that
 * lost the run does nothing more, and the journal reads as if nothing had happened. A run can also be interrupted
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
 * How a process is cut off at an append: killed before it is written, killed when it is written but before that is
 * known, killed inside the next thing it does, or suspended before the append and woken after another process has
 * finished the run.
 *
 * @category models
 * @since 0.1.0
 */
export type Way = Watch.Cut["way"]

export type {
  /**
   * Where a process is cut off: at which append of which process, both counted from 1.
   *
   * @category models
   * @since 0.1.0
   */
  Cut,
  /**
   * Where a process is interrupted: before one of its steps. A step is a stretch in which one fiber runs until it
   * yields.
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
   * The run to put through the matrix.
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
 * - `append_repeatable`: an append that is repeated because its acknowledgement was lost succeeds.
 * - `same_journal`: the final journal is that of an undisturbed run.
 * - `nothing_left`: an interruption leaves nothing behind that was started.
 *
 * @category models
 * @since 0.1.0
 */
export type Rule = Verdict.Rule

/**
 * A rule that was broken, and where the run was cut off. Without cuts, it was broken by the undisturbed run.
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
  /** Appends of the undisturbed run. */
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
    // A store may respond at another time, so that the run ends before the step of its interruption.
    if (order === undefined || life.interrupted) points++
    for (const { detail, rule } of life.findings) violations.push({ rule, cuts, detail })
    return life
  })
  const commits = undisturbed.commits.reduce((sum, count) => sum + count, 0)
  for (const { detail, rule } of undisturbed.findings) violations.push({ rule, cuts: [], detail })
  // A rule that is broken undisturbed would be broken everywhere, so it is reported once.
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
