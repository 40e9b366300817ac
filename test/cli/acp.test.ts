import type * as acp from "@agentclientprotocol/sdk"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { command, final } from "../support/blocks.ts"
import { folder } from "../support/folder.ts"
import { bin, editor, open, prompt, textOf } from "./acpEditor.ts"

/** A folder with a scripted model, and with skills that leave a trace when they run. */
const place = Effect.fnUntraced(function* (...replies: ReadonlyArray<string>) {
  const cwd = yield* folder
  writeFileSync(join(cwd, "replies.json"), JSON.stringify(replies))
  mkdirSync(join(cwd, "skills"))
  writeFileSync(
    join(cwd, "skills", "letters.ts"),
    `import { Effect, Schema } from "${import.meta.resolve("effect")}"
import * as Skill from "${import.meta.resolve("../../src/Skill.ts")}"
import { appendFileSync } from "node:fs"
const trace = (line: string) => appendFileSync(${JSON.stringify(join(cwd, "trace"))}, line + "\\n")
const input = Schema.Struct({ to: Schema.String })
export const send = Skill.make("send", {
  description: "Sends a letter",
  input,
  execute: ({ to }) => Effect.sync(() => { trace("sent to " + to); return "it is sent" })
})
export const walk = Skill.make("walk", {
  description: "Walks and never arrives",
  input,
  effects: "read",
  execute: ({ to }) =>
    Effect.andThen(Effect.sync(() => trace("on the way to " + to)), Effect.never).pipe(
      Effect.onInterrupt(() => Effect.sync(() => trace("turned back")))
    )
})
`
  )
  const args = ["--script", "replies.json", "--skills-from", "skills"]
  return { cwd, args, trace: () => (existsSync(join(cwd, "trace")) ? readFileSync(join(cwd, "trace"), "utf8") : "") }
})

/** Waits for the first trace. */
const leaves = (trace: () => string) =>
  Effect.eventually(
    Effect.delay(
      Effect.suspend(() => (trace() === "" ? Effect.fail("not yet") : Effect.void)),
      "5 millis"
    )
  )

const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const select = (optionId: string) => (): acp.RequestPermissionOutcome => ({ outcome: "selected", optionId })

describe("kernai acp", () => {
  it.live("answers prompts of an editor, and loads the session in another process", () =>
    Effect.gen(function* () {
      const { args, cwd } = yield* place(final("Hello, Ada, nice to meet you."), final("You are Ada."))
      const first = yield* editor({ cwd, args })
      const { sessionId } = yield* open(first, cwd)
      const resource = { uri: "file:///notes.md", text: "Ada writes programs." }
      const end = yield* prompt(
        first,
        sessionId,
        "I am Ada.",
        { type: "resource", resource },
        { type: "image", data: picture, mimeType: "image/png" }
      )
      assert.strictEqual(end.stopReason, "end_turn")
      assert.strictEqual(textOf(first.updates), "Hello, Ada, nice to meet you.")
      assert.strictEqual(yield* first.leave, 0)

      const second = yield* editor({ cwd, args })
      const { sessions } = yield* Effect.promise(() => second.agent.request("session/list", { cwd }))
      assert.deepStrictEqual(
        sessions.map((session) => [session.sessionId, session.cwd]),
        [[sessionId, cwd]]
      )
      assert.include(sessions[0]?.title ?? "", "I am Ada.")
      yield* Effect.promise(() => second.agent.request("session/load", { sessionId, cwd, mcpServers: [] }))
      assert.include(textOf(second.updates, "user_message_chunk"), "I am Ada.")
      assert.include(textOf(second.updates, "user_message_chunk"), "Ada writes programs.")
      assert.strictEqual(textOf(second.updates), "Hello, Ada, nice to meet you.")
      second.updates.length = 0
      yield* prompt(second, sessionId, "Who am I?")
      assert.strictEqual(textOf(second.updates), "You are Ada.")
    })
  )

  it.live("lets the person allow calls once or always, and reject them", () =>
    Effect.gen(function* () {
      const letter = (to: string) => command("send", { to })
      const { args, cwd, trace } = yield* place(letter("Ada"), final("Sent."), letter("Bob"), final("Sent again."))
      const allowing = yield* editor({ cwd, args, decide: select("always") })
      const { sessionId } = yield* open(allowing, cwd)
      yield* prompt(allowing, sessionId, "Write to Ada.")
      yield* prompt(allowing, sessionId, "Write to Bob.")
      assert.strictEqual(trace(), "sent to Ada\nsent to Bob\n")
      assert.strictEqual(allowing.asked.length, 1)
      assert.deepStrictEqual(
        allowing.asked[0]?.options.map(({ kind }) => kind),
        ["allow_once", "allow_always", "reject_once"]
      )
      const statuses = allowing.updates.flatMap((update) =>
        update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update" ? [update.status] : []
      )
      assert.deepStrictEqual(statuses.slice(0, 3), ["pending", "in_progress", "completed"])

      const rejecting = yield* editor({ cwd, args, decide: select("reject") })
      const other = yield* open(rejecting, cwd)
      yield* prompt(rejecting, other.sessionId, "Write to Ada.")
      assert.strictEqual(textOf(rejecting.updates), "Sent.")
      assert.strictEqual(trace(), "sent to Ada\nsent to Bob\n")
    })
  )

  it.live("interrupts the calls of a prompt that is cancelled, and answers the next one", () =>
    Effect.gen(function* () {
      const { args, cwd, trace } = yield* place(command("walk", { to: "Rome" }), final("We stay."))
      const one = yield* editor({ cwd, args })
      const { sessionId } = yield* open(one, cwd)
      const prompting = one.agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "Go." }] })
      yield* leaves(trace)
      yield* Effect.promise(() => one.agent.notify("session/cancel", { sessionId }))
      const { stopReason } = yield* Effect.promise(() => prompting)
      assert.strictEqual(stopReason, "cancelled")
      assert.strictEqual(trace(), "on the way to Rome\nturned back\n")
      const last = one.updates.at(-1)
      assert.isTrue(last?.sessionUpdate === "tool_call_update" && last.status === "failed")
      yield* prompt(one, sessionId, "Stay.")
      assert.strictEqual(textOf(one.updates), "We stay.")
      assert.strictEqual(yield* one.leave, 0)
    })
  )

  it.live("loads a session whose process was killed, and answers the next prompt", () =>
    Effect.gen(function* () {
      const { args, cwd, trace } = yield* place(command("walk", { to: "Rome" }), final("We stay."))
      const killed = yield* editor({ cwd, args })
      const { sessionId } = yield* open(killed, cwd)
      const prompting = killed.agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "Go." }] })
      prompting.catch(() => undefined)
      yield* leaves(trace)
      process.kill(killed.pid, "SIGKILL")
      const next = yield* editor({ cwd, args })
      yield* Effect.promise(() => next.agent.request("session/load", { sessionId, cwd, mcpServers: [] }))
      const calls = next.updates.flatMap((update) =>
        update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update" ? [update.status] : []
      )
      assert.strictEqual(calls[0], "pending")
      assert.strictEqual(calls.at(-1), "failed")
      yield* prompt(next, sessionId, "Stay.")
      assert.strictEqual(textOf(next.updates), "We stay.")
    })
  )

  it.live("repairs a file in the folder of the session, and changes nothing in plan mode", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      writeFileSync(join(cwd, "three.js"), "export const three = 1 + 1\n")
      const edit = command("edit", { file_path: "three.js", old_string: "1 + 1", new_string: "1 + 2" })
      const status = (more: string) => command("shell", { command: `git status${more}` })
      const replies = [
        edit,
        final("I would change it."),
        edit,
        status(""),
        final("Repaired."),
        status(" --short"),
        final("Yes.")
      ]
      writeFileSync(join(cwd, "replies.json"), JSON.stringify(replies))
      const args = ["--script", "replies.json", "--workspace", "--plan"]
      const one = yield* editor({ cwd, args, decide: select("always") })
      const { modes, sessionId } = yield* open(one, cwd)
      assert.strictEqual(modes?.currentModeId, "plan")
      yield* prompt(one, sessionId, "Three is wrong.")
      assert.include(readFileSync(join(cwd, "three.js"), "utf8"), "1 + 1")
      yield* Effect.promise(() => one.agent.request("session/set_mode", { sessionId, modeId: "work" }))
      yield* prompt(one, sessionId, "Do it.")
      assert.include(readFileSync(join(cwd, "three.js"), "utf8"), "1 + 2")
      yield* prompt(one, sessionId, "Does it run?")
      assert.deepStrictEqual(
        one.asked.map(({ options }) => options[1]?.name),
        ["Always allow git status"]
      )
    })
  )

  it.live("ends the processes of a prompt that is cancelled, and of an editor that leaves", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const sleep = command("shell", { command: "echo $$ > pid; sleep 1000 & sleep 1000" })
      writeFileSync(join(cwd, "replies.json"), JSON.stringify([sleep, sleep]))
      const one = yield* editor({ cwd, args: ["--script", "replies.json", "--workspace", "--yes"] })
      const { sessionId } = yield* open(one, cwd)
      const sleeping = Effect.gen(function* () {
        rmSync(join(cwd, "pid"), { force: true })
        const prompting = one.agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "Sleep." }] })
        const started = Effect.try(() => {
          const pid = Number(readFileSync(join(cwd, "pid"), "utf8"))
          assert.isAbove(pid, 0)
          return pid
        })
        return { prompting, pid: yield* Effect.eventually(Effect.delay(started, "5 millis")) }
      })
      const first = yield* sleeping
      yield* Effect.promise(() => one.agent.notify("session/cancel", { sessionId }))
      assert.strictEqual((yield* Effect.promise(() => first.prompting)).stopReason, "cancelled")
      assert.throws(() => process.kill(first.pid, 0))
      const second = yield* sleeping
      second.prompting.catch(() => undefined)
      assert.strictEqual(yield* one.leave, 0)
      assert.throws(() => process.kill(second.pid, 0))
    })
  )

  it.live("reads and writes through the editor, and runs commands in its terminals", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const file = join(cwd, "three.js")
      writeFileSync(file, "export const three = 1 + 1\n")
      const replies = [
        command("edit", { file_path: "three.js", old_string: "1 + 1.5", new_string: "1 + 2" }),
        command("shell", { command: "npm test" }),
        final("Repaired.")
      ]
      writeFileSync(join(cwd, "replies.json"), JSON.stringify(replies))
      const written: Array<acp.WriteTextFileRequest> = []
      const created: Array<acp.CreateTerminalRequest> = []
      const released: Array<string> = []
      const one = yield* editor({
        cwd,
        args: ["--script", "replies.json", "--workspace", "--yes"],
        capabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
        abilities: (client) =>
          client
            .onRequest("fs/read_text_file", ({ params }) => ({
              content: params.path === file ? "export const three = 1 + 1.5\n" : ""
            }))
            .onRequest("fs/write_text_file", ({ params }) => {
              written.push(params)
              return {}
            })
            .onRequest("terminal/create", ({ params }) => {
              created.push(params)
              return { terminalId: "terminal 1" }
            })
            .onRequest("terminal/output", () => ({ output: "all pass", truncated: false, exitStatus: { exitCode: 0 } }))
            .onRequest("terminal/wait_for_exit", () => ({ exitCode: 0 }))
            .onRequest("terminal/release", ({ params }) => {
              released.push(params.terminalId)
              return {}
            })
      })
      const { sessionId } = yield* open(one, cwd)
      yield* prompt(one, sessionId, "Three is wrong.")
      assert.strictEqual(textOf(one.updates), "Repaired.")
      assert.deepStrictEqual(written, [{ sessionId, path: file, content: "export const three = 1 + 2\n" }])
      assert.deepInclude(created[0], { command: "env", cwd })
      assert.deepStrictEqual(created[0]?.args?.slice(-4), ["bash", "--norc", "-c", "npm test"])
      assert.deepStrictEqual(released, ["terminal 1"])
      const contents = one.updates.flatMap((update) =>
        update.sessionUpdate === "tool_call_update" ? (update.content ?? []) : []
      )
      assert.deepStrictEqual(contents, [{ type: "terminal", terminalId: "terminal 1" }])
    })
  )

  it.live("offers the tools of the servers that an editor gives a session", () =>
    Effect.gen(function* () {
      const { cwd, trace } = yield* place(command("mcp_my_letters__send", { to: "Ada" }), final("Sent."))
      const one = yield* editor({ cwd, args: ["--script", "replies.json"], decide: select("once") })
      const server = {
        name: "my letters",
        command: process.execPath,
        args: [bin, "mcp", "serve", "--skills-from", "skills"],
        env: []
      }
      const { sessionId } = yield* open(one, cwd, [server])
      yield* prompt(one, sessionId, "Write to Ada.")
      assert.strictEqual(trace(), "sent to Ada\n")
      assert.strictEqual(textOf(one.updates), "Sent.")
    })
  )
})
