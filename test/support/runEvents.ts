/**
 * Events without a run: only what a test is about has to be written out.
 */
import type { Message } from "../../src/Message.ts"
import type { RunEvent, RunScope } from "../../src/RunEvent.ts"

const scope: RunScope = { runId: "run", rootRunId: "run", step: 0, depth: 0, taskId: undefined, at: 0 }

type Facts = RunEvent extends infer E ? (E extends RunEvent ? Omit<E, keyof RunScope> : never) : never

/** One event of run `run`, unless the scope says otherwise. */
export const event = (facts: Facts, more?: Partial<RunScope>): RunEvent => ({ ...scope, ...facts, ...more })

/** A piece of a stream: what may be lost. */
export const chunk = (text: string, more?: Partial<RunScope>): RunEvent => event({ type: "text_chunk", text }, more)

/** A phase: what may not. */
export const phase = (revision: number, more?: Partial<RunScope>): RunEvent =>
  event({ type: "turn_completed", revision, turnId: `turn-${revision}` }, more)

/** A message of one text. */
export const message = (role: Message["role"], text: string): Message => ({ role, content: [{ type: "text", text }] })
