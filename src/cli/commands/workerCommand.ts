/**
 * `kernai worker`: takes up stored runs until it is told to stop.
 */

import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { help, usage } from "../exit.ts"
import * as Shared from "./flags.ts"

const flags = {
  store: Shared.store,
  ...Shared.speaker,
  ...Shared.agent,
  agentName: Flag.String("agent-name").pipe(
    Flag.withMetavar("<name>"),
    Flag.withDescription(
      "Take up runs of this agent; may be given several times. Default: agent, as 'kernai run' has it"
    ),
    Flag.atLeast(0)
  ),
  concurrency: Flag.Int("concurrency").pipe(Flag.withDescription("Runs at once (1)"), Flag.withDefault(1)),
  lease: Flag.Int("lease").pipe(
    Flag.withMetavar("<seconds>"),
    Flag.withDescription("How long a run stays held when this worker dies (30)"),
    Flag.withDefault(30)
  ),
  once: Flag.Boolean("once").pipe(
    Flag.withDescription(
      "Take up what can be taken up now, and end: with 1 when a run failed, else with 3 when one waits for a person, else with 0"
    ),
    Flag.withDefault(false)
  )
}

/** The command. */
export const worker = Command.make("worker", flags, (input) =>
  Effect.gen(function* () {
    if (input.concurrency < 1) return yield* usage("--concurrency is a number from 1")
    if (input.lease < 1) return yield* usage("--lease is a number of seconds from 1")
    if (input.agentName.some((name) => /\.(ya?ml|json)$/i.test(name))) {
      return yield* usage("--agent-name is the name of an agent, not its file")
    }
    const actor = yield* Shared.actorOf(input, yield* Shared.speakerOf(input))
    const { work } = yield* Effect.promise(() => import("../runs/workerProcess.ts"))
    yield* work({
      store: input.store,
      actor,
      agents: input.agentName.length === 0 ? ["agent"] : input.agentName,
      concurrency: input.concurrency,
      leaseSeconds: input.lease,
      once: input.once
    })
  })
).pipe(
  Command.withDescription(
    `Take up runs of a store: submitted, answered, or left by a worker that died. SIGTERM ends it: every run comes to the end of its step, and is given back; the code is 130 then. ${Shared.givenAgain}; once it has begun, it keeps its dialect. ${help}`
  ),
  Command.withShortDescription("Run what others stored"),
  Command.withExamples([
    {
      command: "kernai worker --store sqlite:runs.db --model ollama/llama3.1",
      description: "Work on what 'kernai run --detach' submits"
    }
  ])
)
