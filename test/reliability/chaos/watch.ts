/**
 * How long runs are not at rest, by the time in which the machine lets its processes work.
 */
import type { RunStore } from "kernai"
import { kindOf } from "./runs.ts"

/** Milliseconds between two looks at the runs. */
export const lookEvery = 200

export class Watch {
  /** Milliseconds so far. */
  waited = 0
  #last: number
  readonly #begun = new Map<string, number>()

  /** Begins at an instant in milliseconds. */
  constructor(now: number) {
    this.#last = now
  }

  /** Counts the time since the last look. If it took long, the machine had too much to do, and only a part counts. */
  look(now: number): void {
    this.waited += Math.min(now - this.#last, 1.5 * lookEvery)
    this.#last = now
  }

  /**
   * Returns for how long a run should have been at rest. One that kills its process costs a lease with each of its six
   * attempts, so it waits only while nothing is stored of it.
   */
  waitsFor({ revision, runId }: Pick<RunStore.RunHead, "revision" | "runId">): number {
    if (kindOf(runId) !== "poison") return this.waited
    const key = `${runId} at ${revision}`
    const begun = this.#begun.get(key) ?? this.waited
    this.#begun.set(key, begun)
    return this.waited - begun
  }
}
