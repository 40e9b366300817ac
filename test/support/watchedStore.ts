/** A store that notes what was stored before each effect of a run. */
import { Effect, identity, Layer, Stream } from "effect"
import type { RunEvent } from "kernai"
import {
  Agent,
  Hooks,
  Kernel,
  MediaStore,
  ProtocolRegistry,
  Provider,
  RunState,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"

export const agent = Agent.make({ name: "agent", instructions: "", model: "scripted", skills: "all", maxSteps: 5 })

export const look = '<block type="command" name="look">{}</block>'

export const pay = '<block type="command" name="pay">{}</block>'

export const act = `${look}${pay}`

export const replies = [act, '<block type="final">done</block>'] as const

/** What was stored before each thing that others can see. */
export interface World {
  /** How many revisions each transaction had. */
  readonly transactions: Array<number>
  readonly moments: Array<readonly [what: string, last: string | undefined]>
}

export const nameOf = ({ events, op }: RunState.RunRecord): string => events.at(-1)?.type ?? op

/** A memory store that is watched. */
export const watched = (world: World): Effect.Effect<RunStore.RunStoreShape> =>
  Effect.map(RunStore.makeMemory, (store) => ({
    ...store,
    append: (records, state) =>
      Effect.suspend(() => {
        if (records[0].revision > 1) world.transactions.push(records.length)
        return store.append(records, state)
      })
  }))

export const skill = (world: World, store: RunStore.RunStoreShape, name: string, effects: "read" | "write") =>
  Skill.dynamic(name, {
    description: name,
    inputSchema: { type: "object" },
    effects,
    execute: () => Effect.as(see(world, store, name), "ok")
  })

/** Notes the last record that is stored at this moment. */
export const see = (world: World, store: RunStore.RunStoreShape, what: string) =>
  Effect.map(Stream.runCollect(Stream.orDie(store.read("run"))), (records) => {
    const last = records.at(-1)
    world.moments.push([what, last === undefined ? undefined : nameOf(last)])
  })

export const kernelOn = (
  world: World,
  store: RunStore.RunStoreShape,
  protocols: Layer.Layer<ProtocolRegistry.ProtocolRegistry> = Layer.orDie(ProtocolRegistry.layer())
) =>
  Kernel.layerNoProvider.pipe(
    Layer.provide([
      Layer.orDie(SkillRegistry.layer(skill(world, store, "look", "read"), skill(world, store, "pay", "write"))),
      protocols,
      MediaStore.layerMemory,
      Layer.succeed(RunStore.RunStore, store)
    ])
  )

export const watchedProvider = (world: World, store: RunStore.RunStoreShape): Provider.ProviderShape => {
  const inner = MockProvider.make(...replies)
  return {
    ...inner,
    stream: (request) => Stream.unwrap(Effect.as(see(world, store, "model"), inner.stream(request)))
  }
}

export const play = Effect.fnUntraced(function* (
  hooks: Hooks.Hooks = {},
  change: (store: RunStore.RunStoreShape) => RunStore.RunStoreShape = identity
) {
  const world: World = { transactions: [], moments: [] }
  const store = change(yield* watched(world))
  const events: ReadonlyArray<RunEvent.RunEvent> = yield* Kernel.stream(agent, "go", {
    runId: "run",
    provider: watchedProvider(world, store)
  }).pipe(Stream.runCollect, Effect.provide(Layer.merge(kernelOn(world, store), Hooks.layer(hooks))))
  const journal = yield* Stream.runCollect(store.read("run"))
  return { ...world, events, journal, state: yield* store.load("run") }
})
