/** Runs that one process runs, and another cancels or follows: two stores on the same runs. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, FileSystem, Layer, Option, Schema, Stream } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, type RunEvent, RunStore, Skill, SkillRegistry } from "kernai"
import { FileRunStore } from "kernai/file"
import { SqlRunStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { plan } from "../support/workflow.ts"

type Open = (folder: string) => Layer.Layer<RunStore.RunStore, RunStore.StoreError, FileSystem.FileSystem>

const stores: ReadonlyArray<readonly [name: string, open: Open]> = [
  ["SQLite", (folder) => SqlRunStore.layerSqlite({ filename: `${folder}/runs.db`, pollInterval: "20 millis" })],
  ["files", (folder) => FileRunStore.layer(folder, { pollInterval: "20 millis" })]
]

const folder = Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectoryScoped())

/** A process: its store, and a kernel with these skills on it. */
const processOn = (
  store: Layer.Layer<RunStore.RunStore, RunStore.StoreError, FileSystem.FileSystem>,
  skill: Skill.AnySkill
) =>
  Kernel.layerNoProvider.pipe(
    Layer.provideMerge(
      Layer.mergeAll(Layer.fresh(store), SkillRegistry.layer(skill), ProtocolRegistry.layer(), MediaStore.layerMemory)
    ),
    Layer.build
  )

const until = (isTrue: () => boolean) => Effect.repeat(Effect.sleep("5 millis"), { until: isTrue })

describe.each(stores)("a run in another process, over %s", (_name, open) => {
  it.live("is cancelled with its child runs, and stops", () => {
    const entered: Array<string> = []
    const stopped: Array<string> = []
    const wait = Skill.make("wait", {
      description: "Waits",
      input: Schema.Struct({}),
      execute: (_, { runId }) =>
        Effect.suspend(() => {
          entered.push(runId)
          return Effect.onInterrupt(Effect.never, () => Effect.sync(() => stopped.push(runId)))
        })
    })
    return Effect.gen(function* () {
      const store = open(yield* folder)
      const here = yield* processOn(store, wait)
      const there = yield* processOn(store, wait)
      const agent = Agent.make({ instructions: "", model: "m", skills: [wait], taskConcurrency: 4 })
      const provider = MockProvider.make().onCall(({ messages }) =>
        JSON.stringify(messages.at(-1)).includes("do ") ? command("wait") : plan(["a", "b", "c"])
      )
      const running = yield* Effect.forkChild(
        Effect.flip(Kernel.run(agent, "go", { provider, runId: "r" })).pipe(Effect.provideContext(there))
      )
      yield* until(() => entered.length === 3)
      yield* Effect.provideContext(Kernel.cancel("r", { reason: "enough", by: "Ada" }), here)
      assert.deepInclude({ ...(yield* Fiber.join(running)) }, { _tag: "RunCancelled", reason: "enough", by: "Ada" })
      assert.sameMembers(stopped, entered)
      const heads = yield* Context.get(there, RunStore.RunStore).list({ rootRunId: "r" })
      assert.deepStrictEqual(
        heads.map(({ status }) => status.type),
        ["cancelled", "cancelled", "cancelled", "cancelled"]
      )
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  })

  it.live("is not resumed while it runs there, and is once it was interrupted", () => {
    let isPaid = false
    let entered = 0
    const pay = Skill.make("pay", {
      description: "Pays",
      input: Schema.Struct({}),
      effects: "idempotent",
      execute: () => Effect.suspend(() => (entered++, isPaid ? Effect.succeed("paid") : Effect.never))
    })
    return Effect.gen(function* () {
      const store = open(yield* folder)
      const here = yield* processOn(store, pay)
      const there = yield* processOn(store, pay)
      const agent = Agent.make({ instructions: "", model: "m", skills: [pay] })
      const provider = MockProvider.make(command("pay"), final("done"))
      const running = yield* Effect.forkChild(
        Kernel.run(agent, "go", { provider, runId: "r" }).pipe(Effect.provideContext(there))
      )
      yield* until(() => entered === 1)
      const head = Effect.map(Context.get(here, RunStore.RunStore).head("r"), Option.getOrThrow)
      yield* Effect.repeat(head, { until: ({ lease }) => lease?.isLive === true })
      const resumed = Kernel.resume(agent, "r", { provider }).pipe(Effect.provideContext(here))
      const { revision } = yield* head
      assert.strictEqual((yield* Effect.flip(resumed))._tag, "RunBusy")
      assert.strictEqual((yield* head).revision, revision)
      yield* Fiber.interrupt(running)
      assert.isUndefined((yield* head).lease)
      isPaid = true
      assert.strictEqual((yield* resumed).text, "done")
      assert.strictEqual(entered, 2)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  })

  it.live("is followed to its end with each event once, and continues when the follower leaves", () => {
    const gates: Array<() => void> = []
    const look = Skill.make("look", {
      description: "Looks",
      input: Schema.Struct({}),
      effects: "read",
      execute: () => Effect.callback<string>((resume) => void gates.push(() => resume(Effect.succeed("seen"))))
    })
    return Effect.gen(function* () {
      const store = open(yield* folder)
      const here = yield* processOn(store, look)
      const there = yield* processOn(store, look)
      const agent = Agent.make({ instructions: "", model: "m", skills: [look] })
      const provider = MockProvider.make(command("look"), command("look"), final("done"))
      const running = yield* Effect.forkChild(
        Effect.provideContext(Kernel.run(agent, "go", { provider, runId: "r" }), there)
      )
      yield* until(() => gates.length === 1)
      const heard: Array<RunEvent.RunEvent> = []
      const following = (events: Array<RunEvent.RunEvent>) =>
        Stream.runForEach(Kernel.follow("r"), (event) => Effect.sync(() => events.push(event))).pipe(
          Effect.provideContext(here)
        )
      const left: Array<RunEvent.RunEvent> = []
      const leaving = yield* Effect.forkChild(following(left))
      const follower = yield* Effect.forkChild(following(heard))
      yield* until(() => left.length > 0)
      yield* Fiber.interrupt(leaving)
      gates[0]?.()
      yield* until(() => gates.length === 2)
      gates[1]?.()
      yield* Fiber.join(running)
      yield* Fiber.join(follower)
      const journal = Context.get(here, RunStore.RunStore).read("r")
      const stored = (yield* Stream.runCollect(journal)).flatMap(({ events }) => events)
      assert.deepStrictEqual(heard, stored)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  })
})
