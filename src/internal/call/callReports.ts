/**
 * Progress reports of a running call. Each kind is throttled, and its latest report is always emitted. A follower that
 * joins while the call runs receives the latest report of each kind.
 */

import * as Effect from "effect/Effect"
import type { Report } from "../../Skill.ts"
import { type LiveEvent, emit, endReports, keepReports, shown } from "../run/publish.ts"
import { type Run, now } from "../run/run.ts"

/** The reports of one execution of a skill. */
export class CallReports {
  readonly #run: Run
  readonly #skill: string
  readonly #callId: string
  #latest: Map<Report["_tag"], Report> | undefined
  #waiting: Map<Report["_tag"], Report> | undefined
  #emittedAt = -Infinity
  #isTimed = false
  #isOver = false

  constructor(run: Run, skill: string, callId: string) {
    this.#run = run
    this.#skill = skill
    this.#callId = callId
  }

  /** Emits a report, or keeps it until the pause after the last one is over. */
  readonly report = (report: Report): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (this.#isOver) return Effect.void
      this.#keep(report)
      if (this.#run.live.publish === undefined) return Effect.void
      this.#waiting = (this.#waiting ?? new Map()).set(report._tag, report)
      if (now(this.#run) - this.#emittedAt >= pauseMs) return Effect.sync(() => this.#emitWaiting())
      if (this.#isTimed) return Effect.void
      this.#isTimed = true
      return Effect.asVoid(Effect.forkDetach(this.#emitLater()))
    })

  /** Emits waiting reports. Later reports are dropped. Synchronous. */
  end(): void {
    this.#isOver = true
    if (this.#latest !== undefined) endReports(this.#run, this.#callId)
    this.#emitWaiting()
  }

  #keep(report: Report): void {
    if (this.#latest === undefined) {
      const latest = new Map<Report["_tag"], Report>()
      this.#latest = latest
      keepReports(this.#run, this.#callId, () => [...latest.values()].map((report) => this.#eventOf(report)))
    }
    this.#latest.set(report._tag, report)
  }

  #emitLater(): Effect.Effect<void> {
    return Effect.andThen(
      Effect.suspend(() => Effect.sleep(this.#emittedAt + pauseMs - now(this.#run))),
      Effect.sync(() => {
        this.#isTimed = false
        if (!this.#isOver) this.#emitWaiting()
      })
    )
  }

  #emitWaiting(): void {
    if (this.#waiting === undefined) return
    this.#emittedAt = now(this.#run)
    for (const report of this.#waiting.values()) emit(this.#run, this.#eventOf(report))
    this.#waiting.clear()
  }

  #eventOf(report: Report): LiveEvent {
    const call = { skill: this.#skill, callId: this.#callId }
    return report._tag === "Progress"
      ? { type: "skill_progress", ...call, progress: shown(this.#run, report.progress) }
      : { type: "skill_progress", ...call, output: shown(this.#run, report.output) }
  }
}

const pauseMs = 100
