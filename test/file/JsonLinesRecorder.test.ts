import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { ByteSize, Effect, Exit, Fiber, FileSystem, Logger, Option, PlatformError, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as JsonLinesRecorder from "../../src/file/JsonLinesRecorder.ts"
import { jsonObject } from "../../src/kit/json.ts"
import * as Limits from "../../src/Limits.ts"
import * as Recorder from "../../src/Recorder.ts"
import { chunk, event, phase } from "../support/runEvents.ts"

const plan = (content: string) => event({ type: "plan", content })

const linesOf = (text: string): ReadonlyArray<Recorder.Entry> =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

const inFolder = <A, E>(
  test: (file: string, files: FileSystem.FileSystem) => Effect.Effect<A, E, FileSystem.FileSystem>
) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const folder = yield* files.makeTempDirectoryScoped()
    return yield* test(`${folder}/run.jsonl`, files)
  }).pipe(Effect.provide(NodeFileSystem.layer))

/** An empty file whose writes do what the test says. */
const fakeFile = (writeAll: (text: string) => Effect.Effect<void, PlatformError.PlatformError>) => {
  const unused = Effect.die("not used here")
  const info: FileSystem.File.Info = {
    type: "File",
    mtime: Option.none(),
    atime: Option.none(),
    birthtime: Option.none(),
    dev: 0n,
    ino: Option.none(),
    mode: 0o600,
    nlink: Option.none(),
    uid: Option.none(),
    gid: Option.none(),
    rdev: Option.none(),
    size: ByteSize.zero,
    blksize: Option.none(),
    blocks: Option.none()
  }
  const file: FileSystem.File = {
    [FileSystem.FileTypeId]: FileSystem.FileTypeId,
    stat: Effect.succeed(info),
    seek: () => unused,
    sync: unused,
    read: () => unused,
    readAlloc: () => unused,
    truncate: () => unused,
    write: () => unused,
    writeAll: (bytes) => writeAll(new TextDecoder().decode(bytes))
  }
  return FileSystem.layerNoop({ open: () => Effect.succeed(file) })
}

const full = PlatformError.systemError({ _tag: "WriteZero", module: "FileSystem", method: "writeAll" })

describe("JsonLinesRecorder", () => {
  it.effect("appends every entry as a line, in order, before the scope closes", () =>
    inFolder((file, files) =>
      Effect.gen(function* () {
        for (const content of ["first", "second"]) {
          const sink = Recorder.Recorder
          yield* Effect.provide(
            Effect.map(sink, (sink) => {
              for (const event of [plan(content), chunk("x"), phase(1), plan(`${content}\nagain`)]) sink?.record(event)
            }),
            JsonLinesRecorder.layer(file)
          )
        }
        const written = yield* files.readFileString(file)
        assert.isTrue(written.endsWith("}\n"))
        assert.notInclude(written, "\n\n")
        assert.deepStrictEqual(
          linesOf(written).map((entry) => entry.data),
          ["first", "first\nagain", "second", "second\nagain"]
        )
        assert.deepStrictEqual(Recorder.queries(linesOf(written)).steps(), [0])
        assert.strictEqual((yield* files.stat(file)).mode & 0o777, 0o600)
      })
    )
  )

  it.effect("creates the folder of its file, for its owner only", () =>
    inFolder((file, files) =>
      Effect.gen(function* () {
        const folder = file.replace("run.jsonl", "logs")
        const sink = Effect.map(JsonLinesRecorder.make(`${folder}/today/run.jsonl`), (sink) => sink.record(plan("a")))
        yield* Effect.scoped(sink)
        assert.strictEqual(linesOf(yield* files.readFileString(`${folder}/today/run.jsonl`)).length, 1)
        assert.strictEqual((yield* files.stat(folder)).mode & 0o777, 0o700)
      })
    )
  )

  it.effect("terminates a line that a crash truncated, so it damages no other", () =>
    inFolder((file, files) =>
      Effect.gen(function* () {
        for (const left of ["{", `{"event":"pla`]) {
          yield* files.writeFileString(file, left)
          const sink = Effect.map(JsonLinesRecorder.make(file), (sink) => sink.record(plan("whole")))
          yield* Effect.scoped(sink)
          const [torn, whole] = (yield* files.readFileString(file)).split("\n")
          assert.strictEqual(torn, left)
          assert.strictEqual(JSON.parse(whole ?? "").data, "whole")
        }
      })
    )
  )

  it.effect("redacts its entries (W-31)", () =>
    inFolder((file, files) =>
      Effect.gen(function* () {
        const redact = (text: string) => text.replaceAll(/sk-\w+/g, "[key]")
        const sink = Effect.map(JsonLinesRecorder.make(file, { redact }), (sink) => sink.record(plan(`"sk-SECRET"`)))
        yield* Effect.scoped(sink)
        const written = yield* files.readFileString(file)
        assert.notInclude(written, "SECRET")
        assert.strictEqual(linesOf(written)[0]?.data, `"[key]"`)
      })
    )
  )

  it.effect("records how many entries a slow disk lost (R-23)", () =>
    Effect.gen(function* () {
      const written: Array<string> = []
      yield* Effect.gen(function* () {
        const sink = yield* JsonLinesRecorder.make("run.jsonl", { limit: 2 })
        for (const content of ["a", "b", "c", "d", "e"]) sink.record(plan(content))
      }).pipe(Effect.scoped, Effect.provide(fakeFile((text) => Effect.sync(() => written.push(text)))))
      const lines = linesOf(written.join(""))
      assert.deepStrictEqual(
        lines.map((entry) => [entry.event, entry.data]),
        [
          ["entries_lost", { count: 3 }],
          ["plan", "d"],
          ["plan", "e"]
        ]
      )
    })
  )

  it.effect("continues after a full disk, and counts the lost entries", () =>
    Effect.gen(function* () {
      const written: Array<string> = []
      let isFull = true
      yield* Effect.gen(function* () {
        const sink = yield* JsonLinesRecorder.make("run.jsonl")
        sink.record(plan("a"))
        sink.record(plan("b"))
        yield* Effect.yieldNow
        yield* Effect.yieldNow
        isFull = false
        sink.record(plan("c"))
      }).pipe(
        Effect.scoped,
        Effect.provide(
          fakeFile((text) =>
            Effect.suspend(() => {
              if (isFull) return Effect.fail(full)
              written.push(text)
              return Effect.void
            })
          )
        )
      )
      const [lost, kept] = linesOf(written.join(""))
      assert.deepStrictEqual(jsonObject(lost?.data)["count"], 2)
      assert.strictEqual(kept?.data, "c")
      assert.isTrue(written[0]?.startsWith("\n"))
    })
  )

  it.effect("counts each entry lost by an unreliable disk once, and warns once", () =>
    Effect.gen(function* () {
      const written: Array<string> = []
      const warnings: Array<unknown> = []
      let tries = 0
      const disk = fakeFile((text) => {
        if (tries++ % 2 === 0 && tries < 6) return Effect.fail(full)
        written.push(text)
        return Effect.void
      })
      yield* Effect.gen(function* () {
        const sink = yield* JsonLinesRecorder.make("run.jsonl")
        for (const content of ["a", "b", "c", "d", "e", "f", "g"]) {
          sink.record(plan(content))
          yield* Effect.yieldNow
          yield* Effect.yieldNow
        }
      }).pipe(
        Effect.scoped,
        Effect.provide([disk, Logger.layer([Logger.make(({ message }) => void warnings.push(message))])])
      )
      assert.deepStrictEqual(
        linesOf(written.join("")).map((entry) => entry.data),
        [{ count: 1 }, "b", { count: 1 }, "d", { count: 1 }, "f", "g"]
      )
      assert.deepStrictEqual(
        written.map((text) => text.startsWith("\n")),
        [true, true, true, false, false]
      )
      assert.strictEqual(warnings.length, 1)
    })
  )

  it.effect("reports the entries lost by a full disk when it closes (R-23)", () =>
    Effect.gen(function* () {
      const written: Array<string> = []
      let isFull = true
      const disk = fakeFile((text) => {
        if (isFull) return Effect.fail(full)
        written.push(text)
        return Effect.void
      })
      yield* Effect.gen(function* () {
        const sink = yield* JsonLinesRecorder.make("run.jsonl")
        sink.record(plan("a"))
        yield* Effect.yieldNow
        yield* Effect.yieldNow
        isFull = false
      }).pipe(Effect.scoped, Effect.provide(disk))
      const lost = linesOf(written.join("")).map((entry) => [entry.event, entry.data])
      assert.deepStrictEqual(lost, [["entries_lost", { count: 1 }]])
    })
  )

  it.effect("does not keep a scope open for a disk that does not respond", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      let isLeft = true
      const stuck = Effect.onInterrupt(Effect.never, () => Effect.sync(() => (isLeft = false)))
      const sink = yield* JsonLinesRecorder.make("run.jsonl").pipe(
        Effect.provide(fakeFile(() => stuck)),
        Scope.provide(scope)
      )
      sink.record(plan("a"))
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* TestClock.adjust(Limits.defaults.cleanUpTimeout)
      yield* Fiber.join(closing)
      assert.isFalse(isLeft)
    })
  )
})
