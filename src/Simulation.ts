/**
 * Runs agents in simulated surroundings: with another store, another clock, and a middleware that answers for models and
 * calls.
 *
 * Everything else is real: the loop, hooks, policies, instructions and prompts. A process can be given up at any point
 * and the run resumed in another one, as after a crash. `Replay` of `kernai/testing` is made with it.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type { Agent } from "./Agent.ts"
import type { Call, CallResult } from "./Call.ts"
import { asking as askingResult } from "./internal/call/callAsks.ts"
import { withEnvironment } from "./internal/kernel/environment.ts"
import { type Process, processOf, type Start, type Surroundings } from "./internal/kernel/simulated.ts"
import { silent } from "./internal/run/listeners.ts"
import { Kernel } from "./Kernel.ts"
import type { AgentConfigInvalid, StoreError } from "./KernelError.ts"
import type { ProviderShape } from "./Provider.ts"
import type { Question } from "./RunState.ts"
import type { AnySkill } from "./Skill.ts"

export type { Process, Start, Surroundings }

export { Outside } from "./internal/program/outside.ts"

/**
 * Prepares an agent as the kernel does for the run of this id, and passes a constructor of processes to `body`. Media of
 * the run are released when `body` ends.
 *
 * Fails with `AgentConfigInvalid` for an agent with an invalid value. Dies for a kernel whose runs another process runs.
 *
 * @example
 * const replayed = Simulation.withAgent(agent, { runId, provider }, (process) =>
 *   process(surroundings).start({ runId, history: [], input: [Content.text("Hello")], context: {} })
 * )
 *
 * @category running
 * @since 0.1.0
 */
export const withAgent = <Output, S extends AnySkill<unknown>, R, A, E>(
  agent: Agent<Output, S, R, unknown>,
  options: {
    readonly runId: string
    /** The provider that the agent's model string is resolved with. */
    readonly provider: ProviderShape
  },
  body: (process: (surroundings: Surroundings) => Process) => Effect.Effect<A, E>
): Effect.Effect<A, E | AgentConfigInvalid | StoreError, Kernel | R> =>
  Kernel.use(({ parts }) => {
    if (parts === undefined) return Effect.die(new Error("this kernel cannot simulate runs: it has no parts"))
    const { provider, runId } = options
    const whole = Effect.scoped(
      withEnvironment(parts, agent, { provider }, silent, undefined, (environment) =>
        Effect.flatMap(environment.media.run(runId), (media) =>
          Effect.result(body((surroundings) => processOf({ ...environment, media }, surroundings)))
        )
      )
    )
    // The provider is given, so no model is resolved.
    const prepared = Effect.catchTag(
      whole,
      ["InvalidModel", "UnsupportedProvider", "ProviderUnavailable", "ProviderError"],
      Effect.die
    )
    return Effect.flatMap(prepared, Effect.fromResult)
  })

/**
 * Returns the result of a call that waits for a person, as the middleware of a process returns it instead of calling.
 *
 * @category constructors
 * @since 0.1.0
 */
export const asking = (call: Call, question: Question): CallResult => askingResult(call, question, undefined)
