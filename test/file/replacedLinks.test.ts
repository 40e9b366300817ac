import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Option, Result, Stream } from "effect"
import { Media, MediaStore, RunCodec } from "kernai"
import { AgentFile, FileRunStore, SkillFileLoader, SkillPack, SkillPackStore } from "kernai/file"
import * as fs from "node:fs"
import { Worker } from "node:worker_threads"
import * as Recordings from "../../src/cli/demo/recordings.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"

const secret = "SECRET"

/** A root with a file and a folder in it, beside a folder that no reader of the root may read. */
const place = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const base = yield* Effect.flatMap(files.makeTempDirectoryScoped(), files.realPath)
  const write = (name: string, text: string) => {
    const file = `${base}/${name}`
    fs.mkdirSync(file.slice(0, file.lastIndexOf("/")), { recursive: true })
    fs.writeFileSync(file, text)
  }
  return { base, write }
})

/** Puts a link in the place of a file or folder and takes it away, over and over, until the scope closes. */
const swapping = (path: string, outside: string) =>
  Effect.acquireRelease(
    Effect.callback<Worker>((resume) => {
      const worker = new Worker(
        `const fs = require("node:fs")
         const { parentPort, workerData: { outside, path } } = require("node:worker_threads")
         parentPort.postMessage("ready")
         for (;;) {
           fs.renameSync(path, path + ".aside")
           fs.symlinkSync(outside, path)
           fs.unlinkSync(path)
           fs.renameSync(path + ".aside", path)
         }`,
        { eval: true, workerData: { outside, path } }
      )
      worker.once("message", () => resume(Effect.succeed(worker)))
    }),
    (worker) => Effect.promise(() => worker.terminate())
  )

/** A disk on which the link is put in place between the check of a path and its opening. */
const replacing = (files: FileSystem.FileSystem, path: string, outside: string): FileSystem.FileSystem => {
  const replace = Effect.sync(() => {
    if (fs.lstatSync(path).isSymbolicLink()) return
    fs.renameSync(path, `${path}.aside`)
    fs.symlinkSync(outside, path)
  })
  return {
    ...files,
    open: (file, options) => Effect.andThen(replace, files.open(file, options)),
    stream: (file, options) => Stream.unwrap(Effect.as(replace, files.stream(file, options))),
    readDirectoryEntries: (file) =>
      Effect.andThen(file.startsWith(path) ? replace : Effect.void, files.readDirectoryEntries(file))
  }
}

interface Reader {
  readonly what: string
  /** Times it is read while the link is replaced. Default: 200. */
  readonly rounds?: number
  /** What is replaced, and what the link leads to. */
  readonly path: string
  readonly outside: string
  readonly write: (write: (name: string, text: string) => void) => void
  /** Reads what is there, as text. */
  readonly read: (root: string) => Effect.Effect<string, { readonly message: string }, NodeServices.NodeServices>
}

const agent = (name: string) => JSON.stringify({ name, system_prompt: "A", model: "m" })
const manifest = "---\nname: pack\ndescription: d\n---\n"
const skillFile = (name: string) => `import { Effect, Schema } from "${import.meta.resolve("effect")}"
import * as Skill from "${import.meta.resolve("kernai/Skill")}"
export default Skill.make("${name}", { description: "", input: Schema.Struct({}), execute: () => Effect.succeed("") })`

const pack = <A, E extends { readonly message: string }>(
  root: string,
  read: (store: SkillPack.SkillPackStoreShape) => Effect.Effect<A, E>
) =>
  SkillPack.SkillPackStore.use(read).pipe(
    Effect.map((found) => JSON.stringify(found)),
    Effect.provide(SkillPackStore.layer({ roots: [root] }))
  )

const readers: ReadonlyArray<Reader> = [
  {
    what: "a medium",
    path: "root/a.txt",
    outside: "out/out.txt",
    write: (write) => {
      write("root/a.txt", "inside")
      write("out/out.txt", secret)
    },
    read: (root) =>
      Effect.gen(function* () {
        const store = yield* MediaStore.MediaStore
        const { id } = yield* store.put(Media.fromPath("a.txt"))
        return new TextDecoder().decode(yield* store.bytes(id))
      }).pipe(Effect.provide(MediaStore.layerMemoryWith({ root })))
  },
  {
    what: "a recording to be replayed",
    path: "root/a",
    outside: "out",
    write: (write) => {
      const recording = (text: string) => JSON.stringify({ vendor: "v", name: text, model: "m", interactions: [] })
      write("root/a/a.json", recording("inside"))
      write("out/a.json", recording(secret))
    },
    read: (root) => Effect.map(Recordings.open("a/a.json", root), ({ name }) => name)
  },
  {
    what: "a file of a skill pack",
    path: "root/pack/references",
    outside: "out",
    write: (write) => {
      write("root/pack/SKILL.md", manifest)
      write("root/pack/references/a.md", "inside")
      write("out/a.md", secret)
    },
    read: (root) => pack(root, (store) => store.readFile("pack", "references/a.md"))
  },
  {
    what: "the folder of a skill pack",
    path: "root/pack",
    outside: "out",
    write: (write) => {
      write("root/pack/SKILL.md", manifest)
      write("root/pack/references/a.md", "inside")
      write("out/SKILL.md", manifest)
      write("out/references/a.md", secret)
    },
    read: (root) => pack(root, (store) => store.readFile("pack", "references/a.md"))
  },
  {
    what: "the file names of a skill pack",
    path: "root/pack/references",
    outside: "out",
    write: (write) => {
      write("root/pack/SKILL.md", manifest)
      write("root/pack/references/inside.md", "")
      write(`out/${secret}.md`, "")
    },
    read: (root) => pack(root, (store) => store.load("pack"))
  },
  {
    what: "an agent of a folder",
    path: "root/a.json",
    outside: "out/a.json",
    write: (write) => {
      write("root/a.json", agent("inside"))
      write("out/a.json", agent(secret))
    },
    read: (root) => Effect.map(AgentFile.loadAll(root), (agents) => [...agents.keys()].join())
  },
  {
    what: "a skill file",
    rounds: 50,
    path: "root/a.mjs",
    outside: "out/a.mjs",
    write: (write) => {
      write("root/a.mjs", skillFile("inside"))
      write("out/a.mjs", skillFile(secret))
    },
    read: (root) =>
      Effect.gen(function* () {
        const { load } = yield* SkillFileLoader.source(root)
        return JSON.stringify((yield* load).map(({ exports }) => exports))
      })
  },
  {
    what: "the journal of a run",
    path: "root/run.jsonl",
    outside: "out/run.jsonl",
    write: (write) => {
      const { record } = Journal.begin("run").last()
      write("root/run.jsonl", "")
      write("out/run.jsonl", `${Result.getOrThrow(RunCodec.encodeRecords([record]))}\n`)
    },
    read: (root) =>
      Effect.gen(function* () {
        const store = yield* FileRunStore.make(root)
        const state = yield* store.load("run")
        return Option.isSome(state) ? secret : "inside"
      })
  }
]

const textOf = (reader: Reader, base: string) =>
  Effect.match(reader.read(`${base}/root`), { onFailure: ({ message }) => message, onSuccess: (text) => text })

describe("A link that takes the place of a file while it is read leads nowhere:", () => {
  for (const reader of readers) {
    it.effect(reader.what, () =>
      Effect.gen(function* () {
        const { base, write } = yield* place
        reader.write(write)
        const [path, outside] = [`${base}/${reader.path}`, `${base}/${reader.outside}`]
        assert.include(yield* textOf(reader, base), "inside")

        // Replaced between a check and the opening after it.
        const disk = replacing(yield* FileSystem.FileSystem, path, outside)
        const replaced = yield* Effect.provideService(textOf(reader, base), FileSystem.FileSystem, disk)
        assert.notInclude(replaced, secret)
        assert.isTrue(fs.lstatSync(path).isSymbolicLink())
        fs.unlinkSync(path)
        fs.renameSync(`${path}.aside`, path)

        // Replaced at any moment.
        yield* swapping(path, outside)
        let found = 0
        for (let round = 0; round < (reader.rounds ?? 200); round++) {
          if ((yield* textOf(reader, base)).includes(secret)) found++
        }
        assert.strictEqual(found, 0)
      }).pipe(Effect.provide(NodeServices.layer))
    )
  }
})
