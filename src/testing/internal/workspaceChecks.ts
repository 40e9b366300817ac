/**
 * Checks of the files of a workspace: paths, texts and their forms, edits, searches, snapshots.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as assert from "./assert.ts"
import { escapes } from "./pathEscapes.ts"
import type { Check, Refusal, Subject } from "./workspaceSubject.ts"

const bytes = (...values: ReadonlyArray<number>): Uint8Array => Uint8Array.from(values)

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Checks that an effect is refused for one of some reasons. */
export const refused = (effect: Effect.Effect<unknown, Refusal>, ...reasons: ReadonlyArray<string>) =>
  Effect.map(Effect.result(effect), (result) => {
    const reason = Result.isFailure(result) ? result.failure.reason : "nothing"
    assert.ok(reasons.includes(reason), `expected ${reasons.join(" or ")}, got ${reason}`)
  })

const textOf = (workspace: Subject, path: string) =>
  Effect.map(workspace.read(path), (file) => (file._tag === "Text" ? file.text : assert.fail(`${path} is binary`)))

/** Writes bytes, edits their text, and returns the text, which shows wrong characters if the encoding is lost. */
const edited = Effect.fnUntraced(function* (workspace: Subject, content: Uint8Array, oldText: string, newText: string) {
  yield* workspace.write("form.txt", content)
  yield* workspace.edit("form.txt", { oldText, newText })
  return yield* textOf(workspace, "form.txt")
})

const tree = (workspace: Subject) =>
  Effect.forEach(
    ["src/a.ts", "src/b.js", "src/deep/c.ts", "README.md", "node_modules/d/d.ts", ".hidden/e.ts"],
    (path) => workspace.write(path, `// ${path}\nexport const Name = "${path}"\n`)
  )

const paths = (items: ReadonlyArray<{ readonly path: string }>) => items.map(({ path }) => path).sort()

export const files: ReadonlyArray<Check> = [
  {
    name: "reads what it has written, and creates the folders of a file",
    body: Effect.fnUntraced(function* (workspace) {
      yield* workspace.write("a/b/c.txt", "one\ntwo\n")
      assert.equal(yield* textOf(workspace, "a/b/c.txt"), "one\ntwo\n")
      assert.equal(yield* textOf(workspace, `${workspace.root}/a/b/c.txt`), "one\ntwo\n")
      assert.equal(yield* textOf(workspace, "a/./x/../b//c.txt"), "one\ntwo\n")
    })
  },
  {
    name: "shows the difference of a write",
    body: Effect.fnUntraced(function* (workspace) {
      yield* workspace.write("a.txt", "one\ntwo\nthree\n")
      const { difference } = yield* workspace.write("a.txt", "one\n2\nthree\n")
      assert.equal(difference, "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three")
    })
  },
  {
    name: "refuses every path that leads out of its root, for reading, writing, listing and searching",
    body: Effect.fnUntraced(function* (workspace) {
      for (const path of escapes) {
        const reasons = ["outside", "invalid"]
        yield* refused(workspace.read(path), ...reasons)
        yield* refused(workspace.write(path, "escaped"), ...reasons)
        yield* refused(workspace.edit(path, { oldText: "a", newText: "b" }), ...reasons)
        yield* refused(workspace.list(path), ...reasons)
        yield* refused(workspace.glob("*", { path }), ...reasons)
        yield* refused(workspace.grep("a", { path }), ...reasons)
        yield* refused(workspace.restore(new Map([[path, utf8("escaped")]])), ...reasons)
      }
    })
  },
  {
    name: "says whether a path is absent, a folder or a file",
    body: Effect.fnUntraced(function* (workspace) {
      yield* workspace.write("folder/file.txt", "x")
      yield* refused(workspace.read("absent.txt"), "not_found")
      yield* refused(workspace.read("folder"), "not_a_file")
      yield* refused(workspace.read(""), "not_a_file")
      yield* refused(workspace.write("folder", "x"), "not_a_file")
      yield* refused(workspace.write("folder/file.txt/below", "x"), "not_a_folder")
      yield* refused(workspace.list("folder/file.txt"), "not_a_folder")
      yield* refused(workspace.list("absent"), "not_found")
    })
  },
  {
    name: "writes nothing into .git, whose hooks the host would run",
    body: Effect.fnUntraced(function* (workspace) {
      for (const path of [".git/hooks/pre-commit", ".git/config", "sub/.git/config", ".GIT/config", ".git"]) {
        yield* refused(workspace.write(path, "#!/bin/sh"), "read_only")
      }
    })
  },
  {
    name: "returns the bytes of a file that holds no text",
    body: Effect.fnUntraced(function* (workspace) {
      const content = bytes(0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 255)
      yield* workspace.write("image.png", content)
      const file = yield* workspace.read("image.png")
      assert.deepEqual(file._tag === "Binary" ? [...file.bytes] : undefined, [...content])
      yield* refused(workspace.edit("image.png", { oldText: "P", newText: "Q" }), "binary")
    })
  },
  {
    name: "replaces a text that is there once, and says how many places there are otherwise",
    body: Effect.fnUntraced(function* (workspace) {
      yield* workspace.write("a.txt", "one two two\n")
      assert.equal((yield* workspace.edit("a.txt", { oldText: "one", newText: "1" })).places, 1)
      yield* refused(workspace.edit("a.txt", { oldText: "two", newText: "2" }), "many_matches")
      yield* refused(workspace.edit("a.txt", { oldText: "three", newText: "3" }), "no_match")
      yield* refused(workspace.edit("a.txt", { oldText: "", newText: "3" }), "invalid")
      assert.equal((yield* workspace.edit("a.txt", { oldText: "two", newText: "$&", all: true })).places, 2)
      assert.equal(yield* textOf(workspace, "a.txt"), "1 $& $&\n")
    })
  },
  {
    name: "keeps line ends, byte order mark and encoding of an edited file",
    body: Effect.fnUntraced(function* (workspace) {
      assert.equal(yield* edited(workspace, utf8("a\r\nb\r\nc\r\n"), "a\nb", "x\ny"), "x\r\ny\r\nc\r\n")
      assert.equal(yield* edited(workspace, utf8("\ufeffold\n"), "old", "new"), "new\n")
      yield* refused(workspace.edit("form.txt", { oldText: "\ufeff", newText: "x" }), "no_match")
      assert.equal(yield* edited(workspace, bytes(0xff, 0xfe, 0x61, 0, 0xe4, 0), "a", "bc"), "bcä")
      assert.equal(yield* edited(workspace, bytes(0xfe, 0xff, 0, 0x61), "a", "ü"), "ü")
      assert.equal(yield* edited(workspace, bytes(0x61, 0xe4), "a", "bü"), "büä")
      yield* refused(workspace.edit("form.txt", { oldText: "b", newText: "€" }), "invalid")
    })
  },
  {
    name: "applies edits that run at once one after the other",
    body: Effect.fnUntraced(function* (workspace) {
      const lines = Array.from({ length: 20 }, (_, index) => `line ${index}.\n`)
      yield* workspace.write("a.txt", lines.join(""))
      yield* Effect.forEach(
        lines,
        (line, index) => workspace.edit("a.txt", { oldText: line, newText: `changed ${index}.\n` }),
        { concurrency: "unbounded" }
      )
      assert.equal(yield* textOf(workspace, "a.txt"), lines.map((_, index) => `changed ${index}.\n`).join(""))
    })
  },
  {
    name: "writes nothing if what must happen before the write fails",
    body: Effect.fnUntraced(function* (workspace) {
      yield* workspace.write("a.txt", "before")
      yield* refused(
        workspace.write("a.txt", "after", () => Effect.fail({ reason: "not kept" })),
        "not kept"
      )
      assert.equal(yield* textOf(workspace, "a.txt"), "before")
    })
  },
  {
    name: "lists the entries of a folder",
    body: Effect.fnUntraced(function* (workspace) {
      assert.deepEqual(yield* workspace.list(""), [])
      yield* tree(workspace)
      const entries = yield* workspace.list("src")
      assert.deepEqual(entries.map(({ kind, name }) => `${kind} ${name}`).sort(), [
        "file a.ts",
        "file b.js",
        "folder deep"
      ])
    })
  },
  {
    name: "finds files by globs, without node_modules unless the path names it",
    body: Effect.fnUntraced(function* (workspace) {
      yield* tree(workspace)
      const found = (pattern: string, path = "") =>
        Effect.map(workspace.glob(pattern, { path }), ({ items }) => [...items].sort())
      assert.deepEqual(yield* found("**/*.ts"), [".hidden/e.ts", "src/a.ts", "src/deep/c.ts"])
      assert.deepEqual(yield* found("*.md"), ["README.md"])
      assert.deepEqual(yield* found("*.{ts,js}", "src"), ["src/a.ts", "src/b.js", "src/deep/c.ts"])
      assert.deepEqual(yield* found("src/*.ts"), ["src/a.ts"])
      assert.deepEqual(yield* found("*.ts", "node_modules"), ["node_modules/d/d.ts"])
      const cut = yield* workspace.glob("**/*.ts", { limit: 2 })
      assert.deepEqual([cut.items.length, cut.isCut], [2, true])
    })
  },
  {
    name: "finds lines by expressions, in linear time",
    body: Effect.fnUntraced(function* (workspace) {
      yield* tree(workspace)
      const all = yield* workspace.grep("export")
      assert.deepEqual(paths(all.items), [".hidden/e.ts", "README.md", "src/a.ts", "src/b.js", "src/deep/c.ts"])
      const [first] = (yield* workspace.grep('Na[lm]e = "src.a', { glob: "*.ts" })).items
      assert.deepEqual(first, { path: "src/a.ts", line: 2, text: 'export const Name = "src/a.ts"' })
      assert.deepEqual((yield* workspace.grep("name")).items, [])
      assert.equal((yield* workspace.grep("NAME", { ignoreCase: true, path: "src/a.ts" })).items.length, 1)
      assert.equal((yield* workspace.grep("^// src", { path: "src" })).items.length, 3)
      assert.deepEqual(paths((yield* workspace.grep("const", { glob: "deep/*.ts", path: "src" })).items), [
        "src/deep/c.ts"
      ])
      assert.equal((yield* workspace.grep("export", { limit: 2 })).isCut, true)
      yield* workspace.write("long.txt", `${"a".repeat(100_000)}\n`)
      assert.deepEqual((yield* workspace.grep("(a+)+b", { path: "long.txt" })).items, [])
      yield* refused(workspace.grep("(?=a)"), "invalid")
      yield* refused(workspace.grep("("), "invalid")
      yield* refused(workspace.grep("a", { path: "absent" }), "not_found")
    })
  },
  {
    name: "changes the signature of a file that changes, and gives files their content back",
    body: Effect.fnUntraced(function* (workspace) {
      yield* workspace.write("kept.txt", "kept")
      yield* workspace.write("a.txt", "before")
      const first = yield* workspace.snapshot
      yield* workspace.write("a.txt", "after!")
      yield* workspace.write("new/b.txt", "new")
      const second = yield* workspace.snapshot
      assert.equal(second.get("kept.txt"), first.get("kept.txt"))
      assert.notEqual(second.get("a.txt"), first.get("a.txt"))
      yield* workspace.restore(
        new Map([
          ["a.txt", utf8("before")],
          ["new/b.txt", undefined],
          ["never.txt", undefined]
        ])
      )
      assert.deepEqual([...(yield* workspace.snapshot).keys()].sort(), ["a.txt", "kept.txt"])
      assert.equal(yield* textOf(workspace, "a.txt"), "before")
    })
  },
  {
    name: "reads many files within limits, and leaves out those that do not fit or are not there",
    body: Effect.fnUntraced(function* (workspace) {
      yield* workspace.write("a.txt", "aaa")
      yield* workspace.write("b/b.txt", "bbb")
      yield* workspace.write("large.txt", "large")
      const paths = ["a.txt", "none.txt", "large.txt", "b", "b/b.txt"]
      const found = yield* workspace.contents(paths, { maxFileBytes: 4, maxBytes: 6 })
      assert.deepEqual(
        [...found],
        [
          ["a.txt", utf8("aaa")],
          ["b/b.txt", utf8("bbb")]
        ]
      )
      const fewer = yield* workspace.contents(paths, { maxFileBytes: 4, maxBytes: 5 })
      assert.deepEqual([...fewer.keys()], ["a.txt"])
      yield* refused(workspace.contents(["../a.txt"], { maxFileBytes: 4, maxBytes: 6 }), "outside")
    })
  }
]
