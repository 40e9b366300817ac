/**
 * Checks of the commands of a workspace.
 */

import * as Effect from "effect/Effect"
import * as assert from "./assert.ts"
import type { Check, Subject } from "./workspaceSubject.ts"
import { refused } from "./workspaceChecks.ts"

/** Waits until a background process has written something. */
const until = Effect.fnUntraced(function* (workspace: Subject, id: string, text: string) {
  while (true) {
    const output = yield* workspace.output(id)
    if (output.text.includes(text) || output.exitCode !== undefined) return output
    yield* Effect.sleep(20)
  }
})

export const commands: ReadonlyArray<Check> = [
  {
    name: "runs a command in its root and returns its output and exit code",
    body: Effect.fnUntraced(function* (workspace) {
      yield* workspace.write("a.txt", "one\ntwo\n")
      assert.deepEqual(yield* workspace.run("grep -c o a.txt; cd /; exit 3"), { output: "2\n", exitCode: 3 })
      assert.equal((yield* workspace.run("pwd")).output, `${workspace.root}\n`)
      assert.deepEqual(yield* workspace.run("echo out; echo err >&2"), { output: "out\nerr\n", exitCode: 0 })
    })
  },
  {
    name: "shows commands what was written, and what commands wrote",
    body: Effect.fnUntraced(function* (workspace) {
      yield* workspace.write("a.txt", "old\n")
      yield* workspace.write("gone.txt", "x")
      yield* workspace.run("sed -i s/old/new/ a.txt && mkdir -p b && echo made > b/c.txt && rm gone.txt")
      const file = yield* workspace.read("a.txt")
      assert.equal(file._tag === "Text" ? file.text : "", "new\n")
      assert.deepEqual([...(yield* workspace.snapshot).keys()].sort(), ["a.txt", "b/c.txt"])
      yield* refused(workspace.read("gone.txt"), "not_found")
    })
  },
  {
    name: "gives commands no input",
    body: Effect.fnUntraced(function* (workspace) {
      assert.equal((yield* workspace.run("cat; echo done")).output, "done\n")
    })
  },
  {
    name: "refuses a command that is none",
    body: Effect.fnUntraced(function* (workspace) {
      for (const command of ["", " \n", "echo \0", "x".repeat(100_000)]) {
        yield* refused(workspace.run(command), "invalid")
        yield* refused(workspace.start(command), "invalid")
      }
    })
  },
  {
    name: "ends a command at its timeout",
    body: Effect.fnUntraced(function* (workspace) {
      const { exitCode } = yield* workspace.run("sleep 600", { timeout: 200 })
      assert.equal(exitCode, undefined)
    })
  },
  {
    name: "keeps the head and the tail of a long output",
    body: Effect.fnUntraced(function* (workspace) {
      yield* workspace.write("long.txt", "0123456789\n".repeat(150_000))
      const { output } = yield* workspace.run("echo head; cat long.txt; echo tail")
      assert.ok(output.startsWith("head\n") && output.endsWith("tail\n"))
      assert.ok(output.includes("left out"))
      assert.ok(output.length <= 1024 * 1024)
    })
  },
  {
    name: "runs processes in the background, whose output is read by offset",
    body: Effect.fnUntraced(function* (workspace) {
      const id = yield* workspace.start("echo one; echo two; exit 4")
      const { exitCode, next, text } = yield* until(workspace, id, "two").pipe(
        Effect.repeat({ until: ({ exitCode }) => exitCode !== undefined })
      )
      assert.deepEqual([text, next, exitCode], ["one\ntwo\n", 8, 4])
      assert.equal((yield* workspace.output(id, 4)).text, "two\n")
      assert.deepEqual((yield* workspace.output(id, 999)).text, "")
      yield* refused(workspace.output("process-99"), "not_found")
      yield* refused(workspace.stop("process-99"), "not_found")
    })
  },
  {
    name: "runs at most eight background processes at once",
    body: Effect.fnUntraced(function* (workspace) {
      const ids = yield* Effect.forEach(Array.from({ length: 8 }), () => workspace.start("sleep 600"))
      yield* refused(workspace.start("sleep 600"), "busy")
      yield* workspace.stop(ids[0] ?? "")
      assert.equal((yield* workspace.output(ids[0] ?? "")).exitCode, 137)
      yield* workspace.start("echo free")
    })
  }
]

export const environment: ReadonlyArray<Check> = [
  {
    name: "gives commands no variable that is not listed",
    body: Effect.fnUntraced(function* (workspace) {
      process.env["KERNAI_SUITE_SECRET"] = "leaked"
      const { output } = yield* workspace
        .run("env")
        .pipe(Effect.ensuring(Effect.sync(() => delete process.env["KERNAI_SUITE_SECRET"])))
      assert.ok(!output.includes("leaked"))
      const listed =
        /^(?:PATH|HOME|LANG|LC_ALL|TMPDIR|TERM|NO_COLOR|CI|PAGER|GIT_PAGER|GIT_TERMINAL_PROMPT|PWD|OLDPWD|SHLVL|_|KERNAI_COMMAND)=/
      assert.deepEqual(
        output
          .trimEnd()
          .split("\n")
          .filter((line) => !listed.test(line)),
        []
      )
    })
  },
  {
    name: "gives commands no terminal",
    body: Effect.fnUntraced(function* (workspace) {
      const { exitCode } = yield* workspace.run("test -t 0 || test -t 1 || test -t 2 || (: < /dev/tty) 2>/dev/null")
      assert.notEqual(exitCode, 0)
    })
  },
  {
    name: "ends what a command left in the background when it ends, is ended, or is interrupted",
    body: Effect.fnUntraced(function* (workspace) {
      // No other process of the machine sleeps as long.
      const sleep = `sleep 30${Math.random().toString().slice(1)}`
      const leave = `(${sleep}; echo late > late.txt) & setsid ${sleep} >/dev/null 2>&1 & nohup ${sleep} >/dev/null 2>&1 &`
      const alive = `ps -eo args | grep -cxF '${sleep}'`
      const rest = Effect.map(workspace.run(alive), ({ output }) => Number(output))
      yield* workspace.run(leave)
      assert.equal(yield* rest, 0)
      yield* workspace.run(`${leave} ${sleep}`, { timeout: 300 })
      assert.equal(yield* rest, 0)
      yield* Effect.timeoutOption(workspace.run(`${leave} ${sleep}`), 300)
      assert.equal(yield* rest, 0)
      const id = yield* workspace.start(`${leave} echo up; ${sleep}`)
      yield* until(workspace, id, "up")
      yield* workspace.stop(id)
      assert.equal(yield* rest, 0)
    })
  }
]
