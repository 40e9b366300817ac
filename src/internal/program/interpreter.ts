/**
 * The provider of a program: its replies are the calls that the program makes, and at last its result.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import { type ProgramError, ProgramFailed } from "../../KernelError.ts"
import type { ProviderShape } from "../../Provider.ts"
import type { Message } from "../../Message.ts"
import { finish, type StreamPart, text } from "../../StreamPart.ts"
import { causeText, failureIn, logged, messageOf, tagOf } from "../../kit/foreignCode.ts"
import { CurrentRun, type ReadableRun } from "../state/currentRun.ts"
import { type Asked, type Program, Session } from "./session.ts"

/** Runs a program on the first message of its run, and returns its result as the text of an answer. */
export type Body = (input: Message | undefined) => Effect.Effect<string, unknown, Program>

/** Replies as a program. It has a session for each run, as long as the run is in this process. */
export class Interpreter implements ProviderShape<ProgramError> {
  readonly name = "program"
  readonly #program: string
  readonly #body: Body
  readonly #sessions = new Map<string, Session>()

  constructor(program: string, body: Body) {
    this.#program = program
    this.#body = body
  }

  readonly stream: ProviderShape<ProgramError>["stream"] = () =>
    Stream.unwrap(
      Effect.gen({ self: this }, function* () {
        const run = yield* readable
        const reply = yield* this.#sessionOf(run).next(run)
        return Stream.fromArray(
          Exit.isExit(reply) ? yield* this.#answer(reply) : callParts(run.state.currentTurn?.turnId ?? "", reply)
        )
      })
    )

  /** Runs a step of the run's open turn. */
  readonly step = (callId: string): Effect.Effect<unknown, unknown> =>
    Effect.gen({ self: this }, function* () {
      const run = yield* readable
      const effect = yield* this.#sessionOf(run).effectOf(run, callId)
      return effect === undefined ? yield* Effect.die(new Error(`no step ${callId}`)) : yield* effect
    })

  /** Ends the programs that are left. */
  readonly close: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach(this.#sessions.values(), ({ close }) => close, { discard: true, concurrency: "unbounded" })
  )

  #sessionOf({ state }: ReadableRun): Session {
    const known = this.#sessions.get(state.runId)
    if (known !== undefined) return known
    const session = new Session(this.#program, this.#body(state.input[state.history]))
    this.#sessions.set(state.runId, session)
    return session
  }

  #answer(exit: Exit.Exit<string, unknown>): Effect.Effect<ReadonlyArray<StreamPart>, ProgramFailed> {
    if (Exit.isSuccess(exit)) {
      return Effect.succeed([
        { type: "text-start", id: "0" },
        text(exit.value),
        { type: "text-end", id: "0" },
        finish("stop", free)
      ])
    }
    const { cause } = exit
    const failure = failureIn(cause)
    const failed = (error: string, detail: string) =>
      Effect.fail(new ProgramFailed({ program: this.#program, error, detail }))
    return cause.reasons.some(Cause.isFailReason)
      ? failed(tagOf(failure), messageOf(failure))
      : Effect.andThen(
          logged(Effect.logError(`the program '${this.#program}' failed unexpectedly`, causeText(cause))),
          failed("Defect", "it failed unexpectedly")
        )
  }
}

/** The run of this fiber. A program is called only by the loop of a run. */
const readable = Effect.flatMap(CurrentRun, (run) =>
  run === undefined ? Effect.die(new Error("a program runs in a run only")) : Effect.succeed(run)
)

const callParts = (turnId: string, calls: ReadonlyArray<Asked>): ReadonlyArray<StreamPart> => [
  ...calls.map(
    ({ input, name }, index) => ({ type: "tool-call", id: `${turnId}.${index}`, name, params: input }) as const
  ),
  finish("tool-calls", free)
]

/** The usage of a reply that no model wrote. */
const free = { inputTokens: { total: 0 }, outputTokens: { total: 0 } }
