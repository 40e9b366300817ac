/**
 * An agent repairs a failing test in a folder. Its changes are taken back, and a fork continues with the files that the
 * run had at one of its revisions.
 *
 * The folder is in memory; with `--sandbox` it is a temporary one on disk, whose commands run in bubblewrap.
 *
 * npm run example -- examples/18-workspace.ts [--sandbox]
 */
import { NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Layer } from "effect"
import { Agent, Kernel, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { FileMediaStore } from "kernai/file"
import { MockProvider } from "kernai/testing"
import { Workspace, WorkspaceHistory, WorkspacePolicy, WorkspaceSkills } from "kernai/workspace"

const files = {
  "sum.sh": "echo $(($1 - $2))\n",
  "test.sh": '[ "$(bash sum.sh 2 3)" = 5 ] && echo passed || { echo failed; exit 1; }\n'
}

const temporary = FileSystem.FileSystem.use((fs) => fs.makeTempDirectoryScoped())

const InSandbox = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const root = yield* temporary
  for (const [name, text] of Object.entries(files)) yield* fs.writeFileString(`${root}/${name}`, text)
  return Workspace.layerSandboxed({ root })
})

const WorkspaceLive = process.argv.includes("--sandbox") ? Layer.unwrap(InSandbox) : Workspace.layerMemory(files)

// The files of a run are among its media, so they are kept where media outlive their run.
const MediaLive = Layer.unwrap(Effect.map(temporary, FileMediaStore.layer))

const agent = Agent.make({ instructions: "You repair code.", model: "scripted", skills: "all", dialect: "tools" })

const call = (name: string, input: { readonly [key: string]: string }) => ({ calls: [{ name, input }] })

const model = MockProvider.make(
  call("shell", { command: "bash test.sh" }),
  call("edit", { file_path: "sum.sh", old_string: "$1 - $2", new_string: "$1 + $2" }),
  call("shell", { command: "bash test.sh | tee log.txt" }),
  "The sum was a difference. The test passes.",
  call("shell", { command: "ls" }),
  "Continued without the log."
)

const KernelLive = Kernel.layer.pipe(
  Layer.provide([
    MockProvider.layerOf(model),
    WorkspacePolicy.layer({ allow: ["bash test.sh", "tee", "ls"] }),
    WorkspaceHistory.layerForks()
  ]),
  Layer.provide([SkillRegistry.layer(...WorkspaceSkills.all), ProtocolRegistry.layer()]),
  Layer.provideMerge([RunStore.layerMemory, MediaLive, WorkspaceLive]),
  Layer.provide(NodeServices.layer)
)

const program = Effect.gen(function* () {
  const workspace = yield* Workspace.Workspace
  const shown = (command: string) =>
    Effect.flatMap(workspace.run(command), ({ output }) => Console.log(output.trimEnd()))

  const { text } = yield* Kernel.run(agent, "The test fails.", { runId: "repair" })
  yield* Console.log(text)
  yield* shown("cat sum.sh log.txt")

  const changes = yield* WorkspaceHistory.changes("repair")
  for (const { path, turn } of changes) yield* Console.log(`turn ${turn}: ${path}`)

  yield* WorkspaceHistory.undo("repair")
  yield* shown("cat sum.sh; ls")

  const fork = yield* Kernel.fork("repair", { revision: changes[0]?.revision })
  yield* Console.log((yield* Kernel.resume(agent, fork)).text)
  yield* shown("cat sum.sh; ls")
})

await Effect.runPromise(Effect.provide(program, KernelLive))

// Prints:
// The sum was a difference. The test passes.
// echo $(($1 + $2))
// passed
// turn 2: sum.sh
// turn 3: log.txt
// echo $(($1 - $2))
// sum.sh
// test.sh
// Continued without the log.
// echo $(($1 + $2))
// sum.sh
// test.sh
