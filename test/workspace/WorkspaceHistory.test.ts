import { assert, describe, it } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Exit, FileSystem, Layer, Option } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { FileMediaStore } from "kernai/file"
import { MockProvider } from "kernai/testing"
import { Workspace, WorkspaceError, WorkspaceHistory, WorkspaceSkills } from "kernai/workspace"

const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools" })

const call = (name: string, input: { readonly [key: string]: string }) => ({ calls: [{ name, input }] })

const replies = [
  call("write", { file_path: "new.txt", content: "first\n" }),
  call("edit", { file_path: "a.txt", old_string: "one", new_string: "one more" }),
  call("shell", { command: "echo two > b.txt; rm c.txt; echo made > d.txt" }),
  call("write", { file_path: "new.txt", content: "second\n" }),
  "done"
]

const start = { "a.txt": "one\n", "b.txt": "b\n", "c.txt": "c\n", "kept.txt": "kept\n" }

const end = {
  "a.txt": "one more\n",
  "b.txt": "two\n",
  "d.txt": "made\n",
  "kept.txt": "kept\n",
  "new.txt": "second\n"
}

const media = Layer.unwrap(
  Effect.map(
    FileSystem.FileSystem.use((fs) => fs.makeTempDirectoryScoped()),
    (directory) => FileMediaStore.layer(directory)
  )
).pipe(Layer.provide(NodeServices.layer), Layer.orDie)

const liveIn = (workspace: Layer.Layer<Workspace.Workspace>, store: Layer.Layer<MediaStore.MediaStore> = media) =>
  Kernel.layerNoProvider.pipe(
    Layer.provideMerge(SkillRegistry.layer(...WorkspaceSkills.all)),
    Layer.provideMerge(Layer.mergeAll(ProtocolRegistry.layer(), RunStore.layerMemory, store)),
    Layer.provideMerge(workspace)
  )

const live = liveIn(Workspace.layerMemory(start))

const contents = Workspace.Workspace.use((workspace) =>
  Effect.gen(function* () {
    const found: { [path: string]: string } = {}
    for (const path of [...(yield* workspace.snapshot).keys()].sort()) {
      const file = yield* workspace.read(path)
      found[path] = file._tag === "Text" ? file.text : "?"
    }
    return found
  })
)

const run = Effect.suspend(() => Kernel.run(agent, "?", { runId: "r", provider: MockProvider.make(...replies) }))

/** Resumes a fork with the files of its revision. */
const resumed = (runId: string, provider: MockProvider.Mock, options?: WorkspaceHistory.RestoreOptions) =>
  Effect.provide(Kernel.resume(agent, runId, { provider }), WorkspaceHistory.layerForks(options))

const test = (
  title: string,
  body: Effect.Effect<
    void,
    unknown,
    | Kernel.Kernel
    | MediaStore.MediaStore
    | ProtocolRegistry.ProtocolRegistry
    | RunStore.RunStore
    | SkillRegistry.SkillRegistry
    | Workspace.Workspace
  >
) => it.live(title, () => Effect.provide(body, Layer.fresh(live)))

describe("the history of a workspace", () => {
  test(
    "names each change of a run with its turn",
    Effect.gen(function* () {
      yield* run
      assert.deepStrictEqual(yield* contents, end)
      const changes = yield* WorkspaceHistory.changes("r")
      assert.deepStrictEqual(
        changes.map(({ after, before, path, turn }) => [turn, path, before === null, after === null]),
        [
          [1, "new.txt", true, false],
          [2, "a.txt", false, false],
          [3, "b.txt", false, false],
          [3, "c.txt", false, true],
          [3, "d.txt", true, false],
          [4, "new.txt", false, false]
        ]
      )
    })
  )

  test(
    "takes a run back, or a part of its turns",
    Effect.gen(function* () {
      yield* run
      yield* WorkspaceHistory.undo("r", { turn: 4 })
      assert.deepStrictEqual(yield* contents, { ...end, "new.txt": "first\n" })
      yield* WorkspaceHistory.undo("r", { turn: 3 })
      assert.deepStrictEqual(yield* contents, { ...start, "a.txt": "one more\n", "new.txt": "first\n" })
      yield* WorkspaceHistory.undo("r")
      assert.deepStrictEqual(yield* contents, start)
    })
  )

  test(
    "refuses to take back what somebody else has changed since, unless forced",
    Effect.gen(function* () {
      yield* run
      const workspace = yield* Workspace.Workspace
      yield* workspace.write("a.txt", "mine\n")
      assert.strictEqual((yield* Effect.flip(WorkspaceHistory.undo("r")))._tag, "WorkspaceError")
      assert.deepStrictEqual(yield* contents, { ...end, "a.txt": "mine\n" })
      yield* WorkspaceHistory.undo("r", { force: true })
      assert.deepStrictEqual(yield* contents, start)
    })
  )

  test(
    "gives a fork the files of its revision",
    Effect.gen(function* () {
      yield* run
      const [, second, third] = yield* WorkspaceHistory.changes("r")
      const revision = second?.revision ?? 0
      assert.isBelow(revision, third?.revision ?? 0)
      const fork = yield* Kernel.fork("r", { revision })
      const seen = call("shell", { command: "cat a.txt new.txt" })
      const edit = call("edit", { file_path: "new.txt", old_string: "first", new_string: "forked" })
      // The run stops after its edit, and must not be given the files of the fork a second time.
      const provider = MockProvider.make(seen, edit).failOnStep(2)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(resumed(fork, provider))))
      const result = yield* resumed(fork, MockProvider.make("done otherwise"))
      assert.strictEqual(result.text, "done otherwise")
      assert.include(JSON.stringify(provider.calls[1]?.messages), String.raw`one more\nfirst`)
      assert.deepStrictEqual(yield* contents, { ...start, "a.txt": "one more\n", "new.txt": "forked\n" })
      // A fork of the fork has its own revision.
      const again = yield* Kernel.fork(fork, { revision })
      yield* resumed(again, MockProvider.make("done again"))
      assert.deepStrictEqual(yield* contents, { ...start, "a.txt": "one more\n", "new.txt": "first\n" })
      yield* WorkspaceHistory.undo(again)
      assert.deepStrictEqual(yield* contents, start)
    })
  )

  test(
    "does not continue a fork on files that somebody else has changed, unless forced",
    Effect.gen(function* () {
      yield* run
      const [first] = yield* WorkspaceHistory.changes("r")
      const fork = yield* Kernel.fork("r", { revision: first?.revision })
      yield* Workspace.Workspace.use((workspace) => workspace.write("a.txt", "mine\n"))
      const provider = MockProvider.make("done otherwise")
      const refused = yield* Effect.flip(resumed(fork, provider))
      assert.match(refused.message, /a\.txt was changed since the run wrote it/)
      assert.deepStrictEqual([provider.calls.length, (yield* contents)["a.txt"]], [0, "mine\n"])
      yield* resumed(fork, provider, { force: true })
      assert.deepStrictEqual(yield* contents, { ...start, "new.txt": "first\n" })
    })
  )

  test(
    "keeps the bytes of what changed, not of the folder",
    Effect.gen(function* () {
      const workspace = yield* Workspace.Workspace
      yield* workspace.write("large.bin", new Uint8Array(5_000_000).fill(65))
      const [write, edit, , again, done] = replies
      const provider = MockProvider.make(
        ...[write, edit, again, done].flatMap((reply) => (reply === undefined ? [] : [reply]))
      )
      yield* Kernel.run(agent, "?", { runId: "small", provider })
      const store = yield* RunStore.RunStore
      assert.isTrue(Option.isSome(yield* store.load("small")))
      const ids = new Set((yield* WorkspaceHistory.changes("small")).flatMap(({ after, before }) => [after, before]))
      // Two versions of two files.
      assert.strictEqual([...ids].filter((id) => typeof id === "string").length, 4)
    })
  )

  test(
    "takes back what a command did among 2,100 files, of which it stores those that changed, and says what was too large",
    Effect.gen(function* () {
      const workspace = yield* Workspace.Workspace
      const large = new Uint8Array(2_000_000).fill(65)
      const files = new Map<string, Uint8Array>([["large.bin", large]])
      for (let index = 0; index < 2_100; index++) files.set(`many/${index}.txt`, new TextEncoder().encode(`${index}\n`))
      yield* workspace.restore(files)
      const provider = MockProvider.make(
        call("shell", { command: "rm many/7.txt; echo eight > many/8.txt; echo new > many/new.txt" }),
        call("shell", { command: "echo gone > large.bin; echo 9 > many/8.txt" }),
        "done"
      )
      yield* Kernel.run(agent, "?", { runId: "many", provider })
      const sent = JSON.stringify(provider.lastCall?.messages)
      assert.include(sent, "[an undo cannot bring back large.bin: not kept before the command]")
      const changes = yield* WorkspaceHistory.changes("many")
      const ids = new Set(
        changes.flatMap(({ after, before }) => [after, before]).filter((id) => typeof id === "string")
      )
      // 7 and 8 before, 8 twice and new.txt after, and the small content of large.bin.
      assert.strictEqual(ids.size, 6)
      const { lost } = yield* WorkspaceHistory.undo("many")
      assert.deepStrictEqual(lost, ["large.bin"])
      const textOf = (path: string) =>
        Effect.map(workspace.read(path), (file) => (file._tag === "Text" ? file.text : undefined))
      assert.deepStrictEqual([yield* textOf("many/7.txt"), yield* textOf("many/8.txt")], ["7\n", "8\n"])
      assert.strictEqual((yield* Effect.flip(workspace.read("many/new.txt"))).reason, "not_found")
    })
  )

  it.live("says which files are lost where the media of a run were released at its end", () => {
    const released = liveIn(Workspace.layerMemory(start), MediaStore.layerMemory)
    return Effect.gen(function* () {
      yield* run
      const { lost, paths } = yield* WorkspaceHistory.undo("r")
      assert.deepStrictEqual(
        [lost, paths],
        [
          ["a.txt", "b.txt", "c.txt"],
          ["new.txt", "d.txt"]
        ]
      )
      assert.deepStrictEqual(yield* contents, { "a.txt": "one more\n", "b.txt": "two\n", "kept.txt": "kept\n" })
    }).pipe(Effect.provide(released))
  })

  it.live("runs commands among more files than can be looked at, and says so", () => {
    const tooLarge = new WorkspaceError.WorkspaceError({ reason: "too_large", detail: "there are too many files" })
    const huge = Layer.effect(
      Workspace.Workspace,
      Effect.map(Workspace.Workspace, (workspace) => ({ ...workspace, snapshot: Effect.fail(tooLarge) }))
    ).pipe(Layer.provide(Workspace.layerMemory(start)))
    const provider = MockProvider.make(call("shell", { command: "cat a.txt" }), "done")
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "?", { provider })
      const sent = JSON.stringify(provider.lastCall?.messages)
      assert.match(sent, /one.*an undo cannot take back all of this: there are too many files/)
    }).pipe(Effect.provide(liveIn(huge)))
  })

  test(
    "does not repeat an edit that was written before the process died",
    Effect.gen(function* () {
      const edit = call("edit", { file_path: "a.txt", old_string: "one", new_string: "one and one" })
      const store = yield* RunStore.RunStore
      let dies = true
      // The store fails once with the record of the result.
      const failing = RunStore.RunStore.of({
        ...store,
        append: (records, state) =>
          dies && records.some(({ events }) => events.some(({ type }) => type === "tool_call_completed"))
            ? Effect.die("killed")
            : store.append(records, state)
      })
      const kernel = Layer.fresh(Kernel.layerNoProvider).pipe(Layer.provide(Layer.succeed(RunStore.RunStore, failing)))
      const provider = MockProvider.make(edit, "done")
      const first = Kernel.run(agent, "?", { runId: "k", provider })
      yield* Effect.exit(Effect.provide(first, kernel))
      assert.strictEqual((yield* contents)["a.txt"], "one and one\n")
      dies = false
      yield* Kernel.resume(agent, "k", { provider: MockProvider.make("done") })
      assert.strictEqual((yield* contents)["a.txt"], "one and one\n")
      yield* WorkspaceHistory.undo("k")
      assert.deepStrictEqual(yield* contents, start)
    })
  )
})
