import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { ByteSize, Effect, FileSystem, Path, PlatformError } from "effect"
import { SkillPack, SkillPackStore } from "kernai/file"
import { writeFileSync } from "node:fs"

const manifest = (name: string, body = "# Body\n") => `---\nname: ${name}\ndescription: Does ${name}.\n---\n${body}`

/** A file system that tells which files were opened. */
const watched = Effect.gen(function* () {
  const real = yield* FileSystem.FileSystem
  const opened: Array<string> = []
  const note = (path: string) => Effect.sync(() => void opened.push(path))
  const fs = FileSystem.FileSystem.of({
    ...real,
    open: (path, options) => Effect.andThen(note(path), real.open(path, options)),
    readFile: (path) => Effect.andThen(note(path), real.readFile(path)),
    readFileString: (path, encoding) => Effect.andThen(note(path), real.readFileString(path, encoding))
  })
  return { fs, opened }
})

const setUp = Effect.gen(function* () {
  const { fs, opened } = yield* watched
  const path = yield* Path.Path
  const base = yield* fs.makeTempDirectoryScoped()
  const write = Effect.fnUntraced(function* (name: string, text: string) {
    const file = path.join(base, name)
    yield* fs.makeDirectory(path.dirname(file), { recursive: true })
    yield* fs.writeFileString(file, text)
  })
  const link = (from: string, to: string) =>
    fs.symlink(path.isAbsolute(to) ? to : path.join(base, to), path.join(base, from))
  const open = (...roots: ReadonlyArray<string>) =>
    SkillPack.SkillPackStore.use(Effect.succeed).pipe(
      Effect.provide(SkillPackStore.layer({ roots: roots.map((root) => path.join(base, root)) })),
      Effect.provideService(FileSystem.FileSystem, fs)
    )
  return { fs, path, base, write, link, open, opened }
})

const tagOf = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), (error) => error._tag)

const test = Effect.provide(NodeServices.layer)

describe("SkillPackStore", () => {
  it.effect("reads skills from disk in their current state", () =>
    test(
      Effect.gen(function* () {
        const { base, open, path, write } = yield* setUp
        yield* write("r/a/SKILL.md", manifest("a", "first"))
        yield* write("r/a/scripts/run.sh", "echo")
        yield* write("r/a/references/deep/x.md", "x")
        yield* write("r/a/assets/.hidden", "x")
        yield* write("r/loose.md", "x")
        yield* write("r/.git/SKILL.md", manifest("git"))
        yield* write("r/v1.2/SKILL.md", manifest("v1.2"))
        const packs = yield* open("r")
        const { problems, skills } = yield* packs.list
        assert.deepStrictEqual(
          skills.map(({ name }) => name),
          ["a"]
        )
        assert.deepStrictEqual(
          problems.map(({ code, dir }) => [code, path.relative(base, dir)]),
          [["invalid_name", "r/v1.2"]]
        )
        assert.deepStrictEqual((yield* packs.load("a")).files, {
          scripts: ["scripts/run.sh"],
          references: ["references/deep/x.md"],
          assets: []
        })
        assert.strictEqual(yield* packs.readFile("a", "scripts/run.sh"), "echo")
        yield* write("r/a/SKILL.md", manifest("a", "second"))
        yield* write("r/b/SKILL.md", manifest("b"))
        assert.strictEqual((yield* packs.load("a")).body, "second")
        assert.strictEqual((yield* packs.list).skills.length, 2)
      })
    )
  )

  it.effect("prefers the skill of the first root, and reports a missing root", () =>
    test(
      Effect.gen(function* () {
        const { base, open, path, write } = yield* setUp
        yield* write("r1/dup/SKILL.md", manifest("dup", "one"))
        yield* write("r2/dup/SKILL.md", manifest("dup", "two"))
        const packs = yield* open("gone", "r1", "r2")
        const { problems, skills } = yield* packs.list
        assert.strictEqual(skills.length, 1)
        assert.strictEqual((yield* packs.load("dup")).body, "one")
        assert.deepStrictEqual(
          problems.map(({ code, dir }) => [code, path.relative(base, dir)]),
          [
            ["unreadable", "gone"],
            ["duplicate_name", "r2/dup"]
          ]
        )
      })
    )
  )

  it.effect("reads only as much of a file as a listing needs (AC-16)", () =>
    test(
      Effect.gen(function* () {
        const { fs, base, path, write } = yield* setUp
        yield* write("r/big/SKILL.md", manifest("big", "x".repeat(1_000_000)))
        let read = 0
        const counting = FileSystem.FileSystem.of({
          ...fs,
          open: (file, options) =>
            Effect.map(fs.open(file, options), (handle) => ({
              ...handle,
              stat: handle.stat,
              read: (buffer) => Effect.tap(handle.read(buffer), (count) => Effect.sync(() => (read += count)))
            }))
        })
        const packs = yield* SkillPack.SkillPackStore.use(Effect.succeed).pipe(
          Effect.provide(SkillPackStore.layer({ roots: [path.join(base, "r")] })),
          Effect.provideService(FileSystem.FileSystem, counting)
        )
        assert.strictEqual((yield* packs.list).skills.length, 1)
        assert.isAtMost(read, 50_001)
      })
    )
  )

  it.effect("reads a file to its end, even if it became shorter after its size was read", () =>
    test(
      Effect.gen(function* () {
        const { fs, base, path, write } = yield* setUp
        yield* write("r/a/SKILL.md", manifest("a"))
        yield* write("r/a/references/x.md", "short")
        const before = FileSystem.FileSystem.of({
          ...fs,
          stat: (file) => Effect.map(fs.stat(file), (info) => ({ ...info, size: ByteSize.bytes(4_096) }))
        })
        const packs = yield* SkillPack.SkillPackStore.use(Effect.succeed).pipe(
          Effect.provide(SkillPackStore.layer({ roots: [path.join(base, "r")] })),
          Effect.provideService(FileSystem.FileSystem, before)
        )
        assert.strictEqual(yield* packs.readFile("a", "references/x.md"), "short")
      })
    )
  )

  it.effect("opens nothing outside a skill, even through links (AC-17, S-4)", () =>
    test(
      Effect.gen(function* () {
        const { fs, base, link, open, opened, path, write } = yield* setUp
        yield* write("secret.txt", "TOP SECRET")
        yield* write("ok-secret/s/SKILL.md", manifest("s"))
        yield* write("ok/good/SKILL.md", manifest("good"))
        yield* write("ok/good/references/a.md", "A")
        yield* write("ok/other/SKILL.md", manifest("other"))
        yield* write("ok/other/references/b.md", "B")
        yield* link("ok/good/references/out.md", "secret.txt")
        yield* link("ok/good/references/etc.md", "/etc/passwd")
        yield* link("ok/good/references/sibling.md", "ok/other/references/b.md")
        yield* link("ok/good/references/in.md", "ok/good/references/a.md")
        yield* link("ok/good/references/loop", "ok/good/references/loop")
        yield* link("ok/good/assets", "/etc")
        yield* link("ok/s", "ok-secret/s")
        yield* link("ok/all", "ok")
        yield* link("ok/above", ".")
        yield* write("ok/wide/SKILL.md", manifest("wide"))
        yield* link("ok/wide/references", "ok")
        yield* link("ok/wide/assets", "ok/wide")
        yield* write("ok/bad/x", "")
        yield* link("ok/bad/SKILL.md", "secret.txt")
        yield* fs.makeDirectory(path.join(base, "ok/good/references/folder"))
        const packs = yield* open("ok")
        opened.length = 0

        for (const name of ["out.md", "etc.md", "sibling.md", "folder"]) {
          assert.strictEqual(yield* tagOf(packs.readFile("good", `references/${name}`)), "InvalidSkillPath", name)
        }
        assert.strictEqual(yield* tagOf(packs.readFile("good", "assets/passwd")), "InvalidSkillPath")
        assert.strictEqual(yield* tagOf(packs.readFile("s", "references/x")), "InvalidSkillPath")
        assert.strictEqual(yield* tagOf(packs.load("s")), "InvalidSkillPath")
        assert.strictEqual(yield* tagOf(packs.load("bad")), "InvalidSkillPath")
        const { problems, skills } = yield* packs.list
        assert.deepStrictEqual(
          skills.map(({ name }) => name),
          ["good", "other", "wide"]
        )
        assert.deepStrictEqual(
          problems.map(({ code, dir }) => [code, path.relative(base, dir)]),
          [
            ["invalid_path", "ok/above"],
            ["invalid_path", "ok/all"],
            ["invalid_path", "ok/bad"],
            ["invalid_path", "ok/s"]
          ]
        )
        const inside = new Set(["good", "other", "wide"].map((name) => path.join(base, "ok", name, "SKILL.md")))
        assert.deepStrictEqual(
          opened.filter((file) => !inside.has(file)),
          []
        )

        assert.strictEqual(yield* packs.readFile("good", "references/in.md"), "A")
        assert.deepStrictEqual((yield* packs.load("good")).files, {
          scripts: [],
          references: ["references/a.md", "references/in.md"],
          assets: []
        })
        assert.deepStrictEqual((yield* packs.load("wide")).files, { scripts: [], references: [], assets: [] })
        const looped = yield* tagOf(packs.readFile("good", "references/loop"))
        assert.isTrue(looped === "SkillFileNotFound" || looped === "InvalidSkillPath")
        assert.strictEqual(yield* tagOf(packs.readFile("good", "references/a.md/x")), "SkillFileNotFound")
      })
    )
  )

  it.effect("opens no file for a path that is rejected by its text", () =>
    test(
      Effect.gen(function* () {
        const { open, opened, write } = yield* setUp
        yield* write("r/s/SKILL.md", manifest("s"))
        const packs = yield* open("r")
        for (const path of ["../x", "/etc/passwd", "a\u0000.md", "..\\x", "%2e%2e/x", "file:///etc/passwd"]) {
          assert.strictEqual(yield* tagOf(packs.readFile("s", path)), "InvalidSkillPath")
          assert.strictEqual(yield* tagOf(packs.load(path)), "SkillPackNotFound")
        }
        assert.deepStrictEqual(opened, [])
      })
    )
  )

  it.effect("limits the index of a skill with very many files", () =>
    test(
      Effect.gen(function* () {
        const { fs, base, open, path, write } = yield* setUp
        yield* write("r/s/SKILL.md", manifest("s"))
        yield* fs.makeDirectory(path.join(base, "r/s/assets"), { recursive: true })
        for (let index = 0; index < 1_100; index++) writeFileSync(path.join(base, `r/s/assets/${index}`), "")
        const packs = yield* open("r")
        const all = Array.from({ length: 1_100 }, (_, index) => `assets/${index}`)
        assert.deepStrictEqual((yield* packs.load("s")).files.assets, all.toSorted().slice(0, 1_000))
      })
    )
  )

  it.effect("searches no more folders than it lists files", () =>
    test(
      Effect.gen(function* () {
        const { fs, base, path, write } = yield* setUp
        yield* write("r/s/SKILL.md", manifest("s"))
        yield* write("r/s/assets/0/x", "")
        const assets = path.join(base, "r/s/assets")
        const many = Array.from({ length: 1_100 }, (_, index) => ({ name: `${index}`, type: "Directory" as const }))
        const looked = new Set<string>()
        const wide = FileSystem.FileSystem.of({
          ...fs,
          // A folder is listed by its descriptor.
          readDirectoryEntries: (folder) =>
            Effect.flatMap(fs.realPath(folder), (real) =>
              real === assets ? Effect.succeed(many) : fs.readDirectoryEntries(folder)
            ),
          realPath: (file) =>
            Effect.andThen(
              Effect.sync(() => looked.add(file)),
              fs.realPath(file)
            )
        })
        const packs = yield* SkillPack.SkillPackStore.use(Effect.succeed).pipe(
          Effect.provide(SkillPackStore.layer({ roots: [path.join(base, "r")] })),
          Effect.provideService(FileSystem.FileSystem, wide)
        )
        assert.deepStrictEqual((yield* packs.load("s")).files.assets, ["assets/0/x"])
        assert.lengthOf(
          [...looked].filter((file) => file.startsWith(assets)),
          1_000
        )
      })
    )
  )

  it.effect("distinguishes an unreadable file from a missing one, whatever its name", () =>
    test(
      Effect.gen(function* () {
        const { fs, base, path, write } = yield* setUp
        yield* write("r/s/SKILL.md", manifest("s"))
        yield* write("r/s/references/locked.md", "x")
        const cause = Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" })
        const locked = PlatformError.systemError({
          _tag: "PermissionDenied",
          module: "FileSystem",
          method: "open",
          cause
        })
        const guarded = FileSystem.FileSystem.of({
          ...fs,
          open: (file, options) => (file.endsWith("locked.md") ? Effect.fail(locked) : fs.open(file, options))
        })
        const packs = yield* SkillPack.SkillPackStore.use(Effect.succeed).pipe(
          Effect.provide(SkillPackStore.layer({ roots: [path.join(base, "r")] })),
          Effect.provideService(FileSystem.FileSystem, guarded)
        )
        const refusal = yield* Effect.flip(packs.readFile("s", "references/locked.md"))
        assert.deepInclude(refusal, { _tag: "InvalidSkillPath", reason: "it cannot be read" })
        for (const name of ["gone.md", `${"ö".repeat(200)}.md`, "locked.md/x"]) {
          assert.strictEqual(yield* tagOf(packs.readFile("s", `references/${name}`)), "SkillFileNotFound", name)
        }
      })
    )
  )
})
