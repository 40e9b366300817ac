import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, FileSystem, Layer, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"
import { KernelError, Limits, Media, MediaStore, RunStore } from "kernai"
import { FileMediaStore, FileRunStore } from "kernai/file"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as Fork from "../../src/internal/kernel/fork.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { open, suite } from "../support/mediaStore.ts"
import { folder } from "../support/folder.ts"
import { open as openRuns, put } from "../support/runStore.ts"

const scope = Scope.makeUnsafe()
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const at = (directory: string) => open(Layer.provide(FileMediaStore.layer(directory), NodeFileSystem.layer))
const prune = (runs: RunStore.RunStoreShape, media: MediaStore.MediaStoreShape) =>
  RunStore.prune({ updatedBefore: Infinity }).pipe(
    Effect.provideService(RunStore.RunStore, runs),
    Effect.provideService(MediaStore.MediaStore, media)
  )
const png = (text: string) => Media.fromBytes(new TextEncoder().encode(text), "image/png")

describe("FileMediaStore", () => {
  suite(at(Effect.runSync(Scope.provide(folder, scope))), { durable: true })
})

describe("FileMediaStore, on disk", () => {
  const files = (directory: string) =>
    fs
      .readdirSync(directory, { recursive: true, encoding: "utf8" })
      .filter((file) => fs.statSync(`${directory}/${file}`).isFile())

  it.effect("stores the bytes under their digest and a JSON file of metadata, for their owner only", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const run = yield* (yield* at(directory)).run("run_1")
      const { id } = yield* run.put(png("a"))
      const digest = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
      const names = files(directory).toSorted()
      assert.deepStrictEqual(names, [`Media/Runs/run_1/${digest}`, `Media/Runs/run_1/${id}.json`])
      for (const name of names) assert.strictEqual(fs.statSync(`${directory}/${name}`).mode & 0o777, 0o600)
      for (const name of ["Media", "Media/Runs/run_1"]) {
        assert.strictEqual(fs.statSync(`${directory}/${name}`).mode & 0o777, 0o700)
      }
      assert.deepStrictEqual(JSON.parse(fs.readFileSync(`${directory}/${names[1]}`, "utf8")), {
        format: 1,
        id,
        kind: "image",
        mime_type: "image/png",
        source: { type: "bytes", digest, size: 1 },
        metadata: {},
        place: 0
      })
    })
  )

  it.effect("syncs a file before it moves it into place, and the folder after the last one", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const done: Array<string> = []
      const kindOf = (path: string) => path.slice(path.lastIndexOf("/") + 1).replace(/^[^.]+/, "")
      const watched: FileSystem.FileSystem = {
        ...files,
        link: (from, to) => Effect.tap(files.link(from, to), () => Effect.sync(() => done.push(`link ${kindOf(to)}`))),
        open: (path, options) =>
          Effect.map(files.open(path, options), (file) => {
            const sync = Effect.tap(file.sync, () => Effect.sync(() => done.push(`sync ${kindOf(path)}`)))
            return Object.defineProperty(file, "sync", { value: sync })
          })
      }
      const store = yield* Effect.provideService(FileMediaStore.make(yield* folder), FileSystem.FileSystem, watched)
      yield* store.put(png("a"))
      assert.deepStrictEqual(done, ["sync .tmp", "link ", "sync .tmp", "link .json", "sync "])
    }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))
  )

  it.effect("fails with a typed error when a file was altered or has a newer format", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const { id } = yield* Effect.scoped(
        Effect.flatMap(
          Effect.flatMap(at(directory), (store) => store.run("r")),
          (run) => run.put(png("a"))
        )
      )
      const place = `${directory}/Media/Runs/r`
      const json = fs.readFileSync(`${place}/${id}.json`, "utf8")
      const reason = Effect.gen(function* () {
        const run = yield* (yield* at(directory)).run("r")
        const error = yield* Effect.flip(run.bytes(id))
        return error._tag === "StoreError" ? error.reason : error._tag
      })
      fs.writeFileSync(`${place}/${id}.json`, json.replace('"format":1', '"format":2'))
      assert.strictEqual(yield* reason, "format")
      fs.writeFileSync(`${place}/${id}.json`, json.slice(0, -1))
      assert.strictEqual(yield* reason, "corrupt")
      fs.writeFileSync(`${place}/${id}.json`, json)
      const [bytes] = fs.readdirSync(place).filter((file) => !file.endsWith(".json"))
      fs.writeFileSync(`${place}/${bytes}`, "b")
      assert.strictEqual(yield* reason, "corrupt")
      fs.rmSync(`${place}/${bytes}`)
      assert.strictEqual(yield* reason, "unavailable")
    }).pipe(Effect.scoped)
  )

  it.effect("reads no more of a file than was written, and no named pipe in its place", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const { id } = yield* Effect.flatMap((yield* at(directory)).run("r"), (run) => run.put(png("a")))
      const place = `${directory}/Media/Runs/r`
      const [bytes] = fs.readdirSync(place).filter((file) => !file.endsWith(".json"))
      const error = Effect.gen(function* () {
        const run = yield* (yield* at(directory)).run("r")
        return yield* Effect.flip(run.bytes(id))
      })
      fs.writeFileSync(`${place}/${bytes}`, "ab")
      assert.match((yield* error).message, /is larger than 1 bytes/)
      fs.rmSync(`${place}/${bytes}`)
      execFileSync("mkfifo", [`${place}/${bytes}`])
      assert.match((yield* error).message, /is not a plain file/)
      fs.truncateSync(`${place}/${id}.json`, Limits.defaults.fetchedBytes + 1)
      assert.match((yield* error).message, new RegExp(`${id}.json' is larger than 20971520 bytes`))
    }).pipe(Effect.scoped)
  )

  it.effect("can share the folder of a run store, whatever the ids of its runs", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const runs = yield* openRuns(Layer.provide(FileRunStore.layer(directory), NodeFileSystem.layer))
      const media = yield* at(directory)
      const ids = ["Media", "media", "runs", "application"]
      for (const id of ids) {
        yield* put(runs, [Journal.begin(id).last()])
        yield* (yield* media.run(id)).put(png(id))
      }
      const listed = yield* runs.list()
      assert.sameMembers(
        listed.map(({ runId }) => runId),
        ids
      )
      yield* runs.remove(["Media", "media"])
      assert.strictEqual(yield* (yield* (yield* at(directory)).run("Media")).size, 1)
      yield* media.release(ids)
      assert.deepStrictEqual(
        files(directory).filter((file) => file.startsWith("Media")),
        []
      )
      assert.strictEqual((yield* runs.list()).length, 2)
    }).pipe(Effect.scoped)
  )

  it.effect("deletes the media of a pruned run, and those of no other", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const runs = yield* openRuns(Layer.provide(FileRunStore.layer(directory), NodeFileSystem.layer))
      const media = yield* at(directory)
      for (const id of ["old", "young"]) {
        yield* put(runs, [Journal.begin(id).last()])
        yield* (yield* media.run(id)).put(png(id))
      }
      const old = Journal.begin("old")
      yield* put(runs, [old.commit("phase", [{ type: "run_completed", source: "model_done" }])])
      const removed = yield* prune(runs, media)
      assert.deepStrictEqual(removed, ["old"])
      assert.deepStrictEqual(fs.readdirSync(`${directory}/Media/Runs`), ["young"])
    }).pipe(Effect.scoped)
  )

  it.effect("keeps a run and its media as long as a fork of it has not ended", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const runs = yield* openRuns(Layer.provide(FileRunStore.layer(directory), NodeFileSystem.layer))
      const media = yield* at(directory)
      const end = (run: Journal.Writer) =>
        put(runs, [run.commit("phase", [{ type: "run_completed", source: "model_done" }])])
      const original = Journal.begin("original", { createdAt: 1_000 })
      const other = Journal.begin("other", { createdAt: 1_000 })
      yield* put(runs, [original.last(), other.last()])
      for (const id of ["original", "other"]) yield* (yield* media.run(id)).put(png(id))
      for (const run of [original, other]) yield* end(run)
      // The second fork goes on from the first one, which has ended.
      yield* Fork.fork(runs, "original", { revision: 1, runId: "between" })
      yield* end(Journal.begin("between", { createdAt: 1_000 }))
      yield* Fork.fork(runs, "between", { revision: 1, runId: "twin" })
      const removed = prune(runs, media)
      assert.deepStrictEqual(yield* removed, ["other"])
      assert.deepStrictEqual(fs.readdirSync(`${directory}/Media/Runs`), ["original"])
      yield* end(Journal.begin("twin", { createdAt: 1_000 }))
      assert.sameMembers([...(yield* removed)], ["original", "between", "twin"])
      assert.deepStrictEqual(fs.readdirSync(`${directory}/Media/Runs`), [])
    }).pipe(Effect.scoped)
  )

  it.effect("keeps the origin of a fork, and nothing else, when the origin is damaged", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const runs = yield* openRuns(Layer.provide(FileRunStore.layer(directory), NodeFileSystem.layer))
      const media = yield* at(directory)
      const original = Journal.begin("original", { createdAt: 1_000 })
      const other = Journal.begin("other", { createdAt: 1_000 })
      for (const run of [original, other]) {
        yield* put(runs, [run.last(), ...Journal.turn(run), ...Journal.finish(run)])
      }
      yield* Fork.fork(runs, "original", { revision: 3, runId: "twin" })
      const journal = `${directory}/original.jsonl`
      fs.writeFileSync(journal, fs.readFileSync(journal, "utf8").replaceAll("turn_started", "turn_stirred"))
      const anew = yield* openRuns(Layer.provide(FileRunStore.layer(directory), NodeFileSystem.layer))
      const removed = yield* prune(anew, media)
      assert.deepStrictEqual(removed, ["other"])
    }).pipe(Effect.scoped)
  )

  it.effect("keeps the possible origins of a damaged run with their media, and logs it", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const runs = yield* openRuns(Layer.provide(FileRunStore.layer(directory), NodeFileSystem.layer))
      const media = yield* at(directory)
      const original = Journal.begin("original", { createdAt: 1_000 })
      const younger = Journal.begin("younger", { createdAt: 2_000 })
      for (const run of [original, younger]) {
        yield* put(runs, [run.last()])
        yield* (yield* media.run(run.last().state.runId)).put(png(run.last().state.runId))
        yield* put(runs, [run.commit("phase", [{ type: "run_completed", source: "model_done" }])])
      }
      yield* TestClock.setTime(1_500)
      yield* Fork.fork(runs, "original", { revision: 1, runId: "twin" })
      const journal = `${directory}/twin.jsonl`
      const whole = fs.readFileSync(journal, "utf8")
      fs.writeFileSync(journal, whole.replaceAll("run_started", "run_stirred"))
      const logged: Array<string> = []
      const log = Logger.layer([Logger.make(({ message }) => void logged.push(String(message)))])
      // Another process: this one still knows the run as it was.
      const anew = yield* openRuns(Layer.provide(FileRunStore.layer(directory), NodeFileSystem.layer))
      const removed = prune(anew, media).pipe(Effect.provide(log))
      assert.deepStrictEqual(yield* removed, ["younger"])
      assert.deepStrictEqual(fs.readdirSync(`${directory}/Media/Runs`), ["original"])
      assert.match(logged.join("\n"), /no run older than 'twin' is deleted/)
      fs.writeFileSync(journal, whole)
      assert.deepStrictEqual(yield* removed, [])
      yield* anew.remove(["twin"])
      assert.deepStrictEqual(yield* removed, ["original"])
    }).pipe(Effect.scoped)
  )

  it.effect("keeps its size and order after a medium whose write was interrupted", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const stuck = yield* Deferred.make<void>()
      const files = yield* Effect.provide(FileSystem.FileSystem, NodeFileSystem.layer)
      const slow: FileSystem.FileSystem = {
        ...files,
        // The first medium, and not its bytes, is given its place and nobody is told.
        link: (from, to) =>
          Effect.andThen(
            files.link(from, to),
            to.endsWith(".json")
              ? Effect.flatMap(Deferred.succeed(stuck, undefined), (isFirst) => (isFirst ? Effect.never : Effect.void))
              : Effect.void
          )
      }
      const limits = Layer.succeed(Limits.Limits, { ...Limits.defaults, mediaBytes: 2 })
      const store = yield* open(
        Layer.provide(FileMediaStore.layer(directory), Layer.succeed(FileSystem.FileSystem, slow))
      )
      const putting = yield* Effect.forkChild(store.put(png("a")))
      yield* Deferred.await(stuck)
      yield* Fiber.interrupt(putting)

      yield* Effect.provide(store.put(png("b")), limits)
      const error = yield* Effect.flip(Effect.provide(store.put(png("c")), limits))
      assert.deepStrictEqual(error, new KernelError.LimitExceeded({ limit: "mediaBytes", value: 2 }))
      yield* store.put(png("c"))
      const there = (yield* store.list).map(({ source }) => source)
      assert.deepStrictEqual(
        there,
        ["a", "b", "c"].map((text) => png(text).source)
      )
    })
  )

  it.effect("stays within its limit during concurrent puts", () =>
    Effect.gen(function* () {
      const store = yield* at(yield* folder)
      const limits = Layer.succeed(Limits.Limits, { ...Limits.defaults, mediaBytes: 2 })
      const puts = ["a", "b", "c", "d"].map((text) => Effect.exit(store.put(png(text))))
      const exits = yield* Effect.provide(Effect.all(puts, { concurrency: "unbounded" }), limits)
      assert.strictEqual(exits.filter(Exit.isSuccess).length, 2)
      assert.strictEqual(yield* store.size, 2)
    }).pipe(Effect.scoped)
  )

  it.effect("reads media by path inside its root only (S-4)", () =>
    Effect.gen(function* () {
      const [directory, root] = [yield* folder, yield* folder]
      fs.writeFileSync(`${root}/a.png`, "a")
      fs.writeFileSync(`${directory}/b.png`, "b")
      const store = yield* open(Layer.provide(FileMediaStore.layer(directory, { root }), NodeServices.layer))
      const inside = yield* store.put(Media.fromPath(`${root}/a.png`))
      assert.deepStrictEqual(yield* store.bytes(inside.id), new TextEncoder().encode("a"))
      const outside = yield* store.put(Media.fromPath(`${directory}/b.png`))
      assert.strictEqual((yield* Effect.flip(store.bytes(outside.id)))._tag, "MediaUnreadable")
    }).pipe(Effect.scoped)
  )

  it.live("removes half-written files of a killed process, and none that may still be in progress", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const place = `${directory}/Media/Application`
      fs.mkdirSync(place, { recursive: true })
      for (const name of ["old.tmp", "young.tmp", "old"]) fs.writeFileSync(`${place}/${name}`, "half")
      const longAgo = Date.now() / 1_000 - 4_000
      for (const name of ["old.tmp", "old"]) fs.utimesSync(`${place}/${name}`, longAgo, longAgo)
      const { id } = yield* (yield* at(directory)).put(png("a"))
      const names = fs.readdirSync(place).filter((name) => name.length < 64)
      assert.sameMembers(names, ["young.tmp", "old", `${id}.json`])
    }).pipe(Effect.scoped)
  )

  it.effect("fails with a typed error when it cannot write", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      fs.writeFileSync(`${directory}/Media`, "a file where a folder should be")
      const error = yield* Effect.flip(at(directory))
      assert.deepStrictEqual([error._tag, error.reason], ["StoreError", "unavailable"])
    }).pipe(Effect.scoped)
  )
})
