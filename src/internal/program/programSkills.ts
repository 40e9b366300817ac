/**
 * The skills that every program has: to run a step, to wait, and to ask a person.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AnySkill } from "../../Skill.ts"
import * as Skills from "../../Skill.ts"
import { CurrentRun } from "../state/currentRun.ts"
import { Interpreter } from "./interpreter.ts"
import { askName, notAnswered, sleepName } from "./session.ts"

/** The name of the skill that runs the steps of a program. */
export const stepName = "program_step"

const step = Skills.make(stepName, {
  description: "Runs a step of a program.",
  input: Schema.Struct({ name: Schema.String }),
  execute: (_, { callId }) =>
    Effect.flatMap(CurrentRun, (run) =>
      run?.provider instanceof Interpreter
        ? run.provider.step(callId)
        : Effect.die(new Error("a step runs in a program only"))
    )
})

const sleep = Skills.make(sleepName, {
  description: "Waits until a time.",
  input: Schema.Struct({ until: Schema.Finite }),
  effects: "read",
  execute: ({ until }, { ask }) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (until <= now) return Effect.void
      if (ask === undefined || until - now <= longestWait) return Effect.sleep(until - now)
      return Effect.asVoid(ask({ message: "Waits for its time.", answerBy: until, isTimer: true }))
    })
})

/** A program that waits for longer than this leaves its process. */
const longestWait = 60_000

const ask = Skills.make(askName, {
  description: "Asks a person.",
  input: Schema.Struct({
    message: Schema.String,
    form: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
    answerBy: Schema.optionalKey(Schema.Finite)
  }),
  effects: "read",
  execute: Effect.fnUntraced(function* (asking, { ask }) {
    if (ask === undefined) return yield* Effect.fail({ _tag: "Declined", message: "no person can be asked" })
    const reply = yield* ask(asking)
    if (reply._tag === "Accepted") return { values: reply.values }
    const { _tag, isLate, reason = "it was declined" } = { isLate: false, reason: undefined, ...reply }
    return yield* Effect.fail({ _tag: isLate ? notAnswered : _tag, message: reason })
  })
})

/** The skills of a program beside those that its author lists. */
export const programSkills: ReadonlyArray<AnySkill> = [step, sleep, ask]
