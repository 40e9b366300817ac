/** A scripted model repairs a failing test. Killed at every append, the run ends with the same files. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { Workspace, WorkspaceSkills } from "kernai/workspace"
import { has, opened } from "./folders.ts"

const files = {
  "sum.sh": "echo $(($1 - $2))\n",
  "test.sh": '[ "$(bash sum.sh 2 3)" = 5 ] && echo passed || { echo failed; exit 1; }\n'
}

const repaired = { "sum.sh": "echo $(($1 + $2))\n", "test.sh": files["test.sh"], "log.txt": "repaired\n" }

const call = (name: string, input: { readonly [key: string]: string }) => ({ calls: [{ name, input }] })

const replies = [
  call("shell", { command: "bash test.sh" }),
  call("grep", { pattern: "\\$1" }),
  call("edit", { file_path: "sum.sh", old_string: "$1 - $2", new_string: "$1 + $2" }),
  call("shell", { command: "bash test.sh" }),
  call("write", { file_path: "log.txt", content: "repaired\n" }),
  "The test passes."
]

/** Gives the reply that follows what the conversation has. */
const provider = () =>
  MockProvider.named("scripted").onCall(
    ({ messages }) => replies[messages.filter(({ role }) => role === "assistant").length]
  )

const agent = Agent.make({ instructions: "You repair.", model: "m", skills: "all", dialect: "tools" })

type Way = "before" | "after"

/** A store that kills the process at one append: before it stores, or after. */
const killing = (store: RunStore.RunStoreShape, at: number, way: Way) => {
  let appends = 0
  const killed = RunStore.RunStore.of({
    ...store,
    append: (records, state) => {
      appends++
      if (appends !== at) return store.append(records, state)
      return way === "before"
        ? Effect.die("killed")
        : Effect.andThen(store.append(records, state), Effect.die("killed"))
    }
  })
  return { killed, count: () => appends }
}

/** Repairs in a workspace, with one kill. Returns the appends of the first process and the output of the commands. */
const repair = (workspace: Workspace.WorkspaceShape, at: number, way: Way) =>
  Effect.gen(function* () {
    yield* workspace.restore(
      new Map([
        ...Object.entries(files).map(([path, text]) => [path, new TextEncoder().encode(text)] as const),
        ["log.txt", undefined] as const
      ])
    )
    const store = yield* RunStore.RunStore
    const { count, killed } = killing(store, at, way)
    const first = Kernel.run(agent, "Repair it.", { runId: "r", provider: provider() })
    const kernel = Layer.provide(Layer.fresh(Kernel.layerNoProvider), Layer.succeed(RunStore.RunStore, killed))
    yield* Effect.exit(Effect.provide(first, kernel))
    if (Option.isNone(yield* store.load("r"))) return { appends: count(), text: undefined }
    const inFlight = yield* RunStore.inFlight("r")
    const recover = Object.fromEntries(inFlight.map(({ callId }): [string, Kernel.Recovery] => [callId, "retry"]))
    const { messages, text } = yield* Kernel.resume(agent, "r", { provider: provider(), recover })
    assert.include(JSON.stringify(messages), "failed")
    assert.include(JSON.stringify(messages), "passed")
    return { appends: count(), text }
  }).pipe(
    Effect.provide(
      Kernel.layerNoProvider.pipe(
        Layer.provideMerge(Layer.mergeAll(ProtocolRegistry.layer(), RunStore.layerMemory, MediaStore.layerMemory)),
        Layer.provideMerge(SkillRegistry.layer(...WorkspaceSkills.all)),
        Layer.provideMerge(Layer.succeed(Workspace.Workspace, workspace)),
        Layer.fresh
      )
    )
  )

const contents = (workspace: Workspace.WorkspaceShape) =>
  Effect.gen(function* () {
    const found: { [path: string]: string } = {}
    for (const path of (yield* workspace.snapshot).keys()) {
      const file = yield* workspace.read(path)
      found[path] = file._tag === "Text" ? file.text : "?"
    }
    return found
  })

const layers = {
  "in memory": () => Workspace.layerMemory(),
  "in a folder": (root: string) => Workspace.layerLocal({ root }),
  ...(has("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true")
    ? { "in a sandbox": (root: string) => Workspace.layerSandboxed({ root }) }
    : {})
}

describe("a repair", () => {
  for (const [place, layer] of Object.entries(layers)) {
    it.live(
      `${place} ends with the same files wherever it is killed`,
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const workspace = yield* opened(layer)
            const whole = yield* repair(workspace, Infinity, "before")
            assert.deepStrictEqual([whole.text, yield* contents(workspace)], ["The test passes.", repaired])
            assert.isAbove(whole.appends, 10)
            for (let at = 1; at <= whole.appends; at++) {
              for (const way of ["before", "after"] as const) {
                const { text } = yield* repair(workspace, at, way)
                // Killed before its first record, there is no run yet.
                if (at === 1 && way === "before") assert.isUndefined(text)
                else assert.deepStrictEqual([text, yield* contents(workspace)], ["The test passes.", repaired])
              }
            }
            console.log(`kills ${place}: ${whole.appends * 2}`)
          })
        ),
      120_000
    )
  }
})
