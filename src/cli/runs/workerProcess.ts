/**
 * A worker as a process: says what became of each run, in a line.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { type KernelError, ToolNotFound } from "../../KernelError.ts"
import * as RunWorker from "../../RunWorker.ts"
import type { SkillRegistry } from "../../SkillRegistry.ts"
import { Codes, CommandFailed } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"
import * as Actor from "./actor.ts"

/** Who works, and on what. */
export interface Options {
  readonly store: string
  readonly actor: Actor.Actor
  /** The names of the agents whose runs it takes up. */
  readonly agents: ReadonlyArray<string>
  readonly concurrency: number
  readonly leaseSeconds: number
  readonly once: boolean
}

/**
 * Works until it is interrupted, or with `once` until nothing is left to do; then it drains.
 *
 * With `once` it ends as its runs did: when one failed, or else when one waits, it fails.
 */
export const work = Effect.fnUntraced(function* (options: Options) {
  const screen = yield* Screen
  const store = yield* Store.open(options.store, { exists: false })
  const { agent, ground } = yield* Actor.make(options.actor, store, options.store)
  const codes = new Map<string, number>()
  const settings: RunWorker.Options<SkillRegistry> = {
    agents: options.agents.map(agent),
    concurrency: options.concurrency,
    lease: `${options.leaseSeconds} seconds`,
    resume: ({ runId }) =>
      Effect.flatMap(Actor.missing(options.actor, runId), (name) =>
        name === undefined ? Effect.succeed({}) : Effect.fail(new ToolNotFound({ name }))
      ),
    onRun: ({ runId }, exit) =>
      Effect.sync(() => {
        if (options.once) codes.set(runId, codeOfRun(exit))
        screen.out(`${Text.flat(runId)}  ${became(exit)}\n`)
      })
  }
  yield* Effect.provide(
    Effect.gen(function* () {
      if (options.once) {
        yield* RunWorker.runOnce(settings)
        return yield* judge([...codes.values()])
      }
      screen.progress(`waiting for runs of ${options.agents.map((name) => Text.excerpt(name, 40)).join(", ")}\n`)
      return yield* RunWorker.run(settings)
    }),
    ground
  )
})

const codeOfRun = (exit: Exit.Exit<unknown, KernelError>): number => {
  if (Exit.isSuccess(exit)) return Codes.done
  const error = Option.getOrUndefined(Exit.findErrorOption(exit))
  return error?._tag === "RunPaused" ? Codes.paused : Codes.failed
}

/** Fails when a run has no answer. */
const judge = (codes: ReadonlyArray<number>): Effect.Effect<void, CommandFailed> => {
  if (codes.includes(Codes.failed)) {
    return Effect.fail(new CommandFailed({ code: Codes.failed, reason: "a run failed" }))
  }
  return codes.includes(Codes.paused)
    ? Effect.fail(new CommandFailed({ code: Codes.paused, reason: "a run waits for a person" }))
    : Effect.void
}

const became = (exit: Exit.Exit<unknown, KernelError>): string => {
  if (Exit.isSuccess(exit)) return "completed"
  if (Cause.hasInterruptsOnly(exit.cause)) return "given back"
  const error = Cause.squash(exit.cause)
  if (error instanceof ToolNotFound) return Actor.notHere(error.name)
  return Text.excerpt(error instanceof Error ? error.message : String(error), 300)
}
