import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Kernel, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { Workspace, WorkspacePolicy, WorkspaceSkills } from "kernai/workspace"

const allow = ["npm test", "git status", "ls", "grep", "echo"]

describe("the prefixes of commands", () => {
  for (const line of [
    "npm test",
    "npm test -- --run a.test.ts",
    "npm   test\n",
    "ls -la src/*.ts",
    "git status && npm test; ls | grep -n 'a b' || echo done",
    'echo "it\'s" 2>&1 >/dev/null',
    "'npm' \"test\" # a comment",
    "npm \\\n test",
    "echo '$HOME' '`id`' a\\;b",
    "grep {} file & ls"
  ]) {
    it(`allow ${JSON.stringify(line)}`, () => {
      assert.isTrue(WorkspacePolicy.isAllowed(allow, line))
    })
  }

  for (const line of [
    "npm testing",
    "npm",
    "npm install",
    "npmtest",
    "npm test; rm -rf .",
    "npm test && curl x",
    "npm test | sh",
    "npm test & rm x",
    "npm test\nrm x",
    "npm test $(rm x)",
    "npm test `rm x`",
    'npm test "$(rm x)"',
    'npm test "`rm x`"',
    "npm test $X",
    "echo ${X:=y}",
    "PATH=. npm test",
    "X=1",
    "npm test > a.txt",
    "npm test >> a.txt",
    "npm test 2> a.txt",
    "npm test >&1x",
    "npm test >&a.txt",
    "npm test &> a.txt",
    "npm test < a.txt",
    "npm test <(rm x)",
    "npm test >/dev/null2",
    "npm test <<EOF\nx\nEOF",
    "(npm test)",
    "{ npm test; }",
    "! npm test",
    "if npm test; then ls; fi",
    "for x in a; do ls; done",
    "ls() { rm x; }",
    "eval npm test",
    "npm test 'unclosed",
    'npm test "unclosed',
    "npm test \\",
    "npm test &&",
    "npm test ;; ls",
    "&& npm test",
    "",
    "npm\u000btest",
    "npm test\r\nrm x",
    "npm test {a,b}",
    "~/npm test",
    "np$'m' test",
    "echo $'a'"
  ]) {
    it(`do not allow ${JSON.stringify(line)}`, () => {
      assert.isFalse(WorkspacePolicy.isAllowed(allow, line))
    })
  }

  it("are the program and its subcommand, and all words of a program that runs others", () => {
    assert.deepStrictEqual(WorkspacePolicy.prefixesOf("git commit -m 'a b' && ls -la"), ["git commit", "ls"])
    assert.deepStrictEqual(WorkspacePolicy.prefixesOf("node -e 'a b'"), ["node -e 'a b'"])
    assert.deepStrictEqual(WorkspacePolicy.prefixesOf("/usr/bin/env rm x"), ["/usr/bin/env rm x"])
    assert.deepStrictEqual(WorkspacePolicy.prefixesOf("rm $X"), [])
    for (const line of ["git commit -m 'a b'", "node -e 'it'\\''s'"])
      assert.isTrue(WorkspacePolicy.isAllowed(WorkspacePolicy.prefixesOf(line), line))
  })
})

const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools" })

const call = (name: string, input: { readonly [key: string]: string }) => ({ calls: [{ name, input }] })

const kernel = (rules: WorkspacePolicy.Rules, ...replies: ReadonlyArray<MockProvider.Reply>) =>
  Kernel.layerMemory.pipe(
    Layer.provide([MockProvider.layer(...replies), WorkspacePolicy.layer(rules)]),
    Layer.provideMerge(SkillRegistry.layer(...WorkspaceSkills.all)),
    Layer.provideMerge(Workspace.layerMemory({ "a.txt": "one\n" }))
  )

const readA = Effect.map(
  Workspace.Workspace.use((workspace) => workspace.read("a.txt")),
  (file) => (file._tag === "Text" ? file.text : undefined)
)

describe("the policy of a workspace", () => {
  it.live("allows writes, and asks before a command that is not allowed", () =>
    Effect.gen(function* () {
      const paused = yield* Effect.flip(Kernel.run(agent, "?"))
      assert.strictEqual(paused._tag, "RunPaused")
      assert.strictEqual(yield* readA, "two\n")
    }).pipe(
      Effect.provide(
        kernel(
          { allow: ["cat"] },
          call("read", { file_path: "a.txt" }),
          call("edit", { file_path: "a.txt", old_string: "one", new_string: "two" }),
          call("shell", { command: "cat a.txt" }),
          call("shell", { command: "rm a.txt" }),
          "done"
        )
      )
    )
  )

  it.live("changes nothing in plan mode", () =>
    Effect.gen(function* () {
      const { calls, text } = yield* Kernel.run(agent, "?")
      assert.strictEqual(text, "done")
      assert.deepStrictEqual(
        calls.map((call) => "error" in call && call.error !== undefined),
        [false, true, true, true]
      )
      assert.strictEqual(yield* readA, "one\n")
    }).pipe(
      Effect.provide(
        kernel(
          { mode: "plan", allow: ["rm"] },
          call("read", { file_path: "a.txt" }),
          call("edit", { file_path: "a.txt", old_string: "one", new_string: "two" }),
          call("write", { file_path: "a.txt", content: "two" }),
          call("shell", { command: "rm a.txt" }),
          "done"
        )
      )
    )
  )
})
