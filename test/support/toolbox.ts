/** What the tests of the toolbox share: a kernel in memory, and what a run told. */
import { Effect, Layer, Stream } from "effect"
import { type Agent, Kernel, type KernelError, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import type { Provider, RunEvent, Skill } from "kernai"

/** The kernel with these skills; the provider is the run's own. */
export const kernel = (...skills: ReadonlyArray<Skill.AnySkill>) =>
  Kernel.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        SkillRegistry.layer(...skills),
        ProtocolRegistry.layer(),
        MediaStore.layerMemory,
        RunStore.layerMemory
      )
    )
  )

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

/** The events of one type. */
export const of = <T extends RunEvent.Type>(
  { events }: Told,
  type: T
): ReadonlyArray<Extract<RunEvent.RunEvent, { readonly type: T }>> =>
  events.filter((event): event is Extract<RunEvent.RunEvent, { readonly type: T }> => event.type === type)
