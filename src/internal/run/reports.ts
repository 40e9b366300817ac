/**
 * Emits the reports of a call before its result, as events that are not too many.
 */

import * as Effect from "effect/Effect"
import type { Report } from "../../Skill.ts"
import { emit } from "./publish.ts"
import type { LiveEvent } from "./drafts.ts"
import { now, type Run } from "./run.ts"
import { shown } from "./shown.ts"

/** The reports of one call. */
export interface Reports {
  readonly report: (report: Report) => Effect.Effect<void>
  /** Emits what still waits. Later reports are dropped. Synchronous. */
  readonly end: () => void
}

/** Reports of a call of a skill. Each kind is emitted at most once in a while, and the latest of its kind at last. */
export const make = (run: Run, skill: string, callId: string): Reports => {
  const waiting = new Map<Report["_tag"], Report>()
  let emittedAt = -Infinity
  let isTimed = false
  let isOver = false

  const flush = () => {
    emittedAt = now(run)
    for (const report of waiting.values()) emit(run, eventOf(run, skill, callId, report))
    waiting.clear()
  }

  const later = Effect.andThen(
    Effect.suspend(() => Effect.sleep(emittedAt + pauseMs - now(run))),
    Effect.sync(() => {
      isTimed = false
      if (!isOver) flush()
    })
  )

  return {
    report: (report) =>
      Effect.suspend(() => {
        if (isOver || run.live.publish === undefined) return Effect.void
        waiting.set(report._tag, report)
        if (now(run) - emittedAt >= pauseMs) return Effect.sync(flush)
        if (isTimed) return Effect.void
        isTimed = true
        return Effect.asVoid(Effect.forkDetach(later))
      }),
    end: () => {
      isOver = true
      flush()
    }
  }
}

const pauseMs = 100

const eventOf = (run: Run, skill: string, callId: string, report: Report): LiveEvent =>
  report._tag === "Progress"
    ? { type: "skill_progress", skill, callId, progress: shown(run, report.progress) }
    : { type: "skill_preliminary", skill, callId, output: shown(run, report.output) }
