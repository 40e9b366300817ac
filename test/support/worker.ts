/** Processes on one store, for tests of workers. */
import { Effect, Layer, Option, Stream } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, RunStore, Skill, SkillRegistry } from "kernai"
import { Scenario } from "kernai/testing"
import { agent, clerk } from "./clerk.ts"
import { command, final } from "./blocks.ts"
import { plan, slow } from "./workflow.ts"

const skills = (pay: Effect.Effect<string> = Effect.succeed("ok"), effects: Skill.Effects = "idempotent") =>
  SkillRegistry.layer(
    Skill.dynamic("pay", { description: "pays", effects, inputSchema: { type: "object" }, execute: () => pay })
  )

/** The services of one process: its own kernel on a shared store. */
export const process = (
  store: RunStore.RunStoreShape,
  pay?: Effect.Effect<string>,
  effects?: Skill.Effects,
  model = clerk("paid")
) =>
  Kernel.layer.pipe(
    Layer.provide([skills(pay, effects), ProtocolRegistry.layer(), MediaStore.layerMemory, model]),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )

/** An agent that only other processes have. */
export const foreign = Agent.make({ name: "nobody", instructions: "", model: "scripted" })

/** A plan of one task that takes this many minutes, one for each turn. */
export const minutes = (turns: number): Scenario.Script => ({
  root: [plan(["a"]), final("done")],
  tasks: { a: [...Array.from({ length: turns }, () => slow(60_000, command("pay"))), final("A")] }
})

/** A store without offers, a process on it, and a function that submits a run. */
export const crowded = Effect.map(RunStore.makeMemory, (memory) => {
  const store: RunStore.RunStoreShape = { ...memory, offers: undefined }
  const layer = process(store)
  const submit = (of: typeof agent | typeof foreign, runId: string) =>
    Effect.provide(Kernel.submit(of, "pay eva", { runId }), layer)
  return { store, layer, submit }
})

export const unavailable = new RunStore.StoreError({ operation: "acquire", reason: "unavailable", detail: "cut off" })

export const statusOf = (store: RunStore.RunStoreShape, runId: string) =>
  Effect.map(store.head(runId), (head) => Option.getOrThrow(head).status.type)

export const opsOf = (store: RunStore.RunStoreShape, runId: string) =>
  Effect.map(Stream.runCollect(store.read(runId)), (records) => records.map((record) => record.op))
