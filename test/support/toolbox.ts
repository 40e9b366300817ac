/** A run, and all that it told. */
import { Effect, Stream } from "effect"
import { type Agent, Kernel, type KernelError, type Provider, type RunEvent, type Skill } from "kernai"
import { of } from "./kernel.ts"

export interface Told {
  readonly events: ReadonlyArray<RunEvent.RunEvent>
  readonly failure: KernelError.KernelError | undefined
  readonly text: string | undefined
}

/** Runs an agent and gives all it told, and how it ended. */
export const told = <Output, S extends Skill.AnySkill<unknown>>(
  agent: Agent.Agent<Output, S>,
  input: Kernel.Input,
  options: Kernel.RunOptions & { readonly provider: Provider.ProviderShape }
): Effect.Effect<Told, never, Kernel.Kernel> =>
  Effect.gen(function* () {
    const events: Array<RunEvent.RunEvent> = []
    const exit = yield* Effect.result(
      Stream.runForEach(Kernel.stream(agent, input, options), (event) =>
        Effect.sync(() => {
          events.push(event)
        })
      )
    )
    const last = events.findLast((event) => event.type === "result")
    return {
      events,
      failure: exit._tag === "Failure" ? exit.failure : undefined,
      text: last?.type === "result" ? last.text : undefined
    }
  })

/** What the calls of a run gave, each as text. */
export const outputs = (run: Told): ReadonlyArray<string> =>
  of(run.events, "tool_call_completed").map((event) =>
    (event.result.output ?? []).map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("")
  )
