import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Option, Result } from "effect"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { SqlRunStore } from "kernai/sql"
import { RunStore } from "kernai"
import { chat } from "../../../src/cli/chat/terminalChat.ts"
import type { ChatFlags } from "../../../src/cli/commands/chatFlags.ts"
import * as Reader from "../../../src/cli/chat/lineReader.ts"
import * as Session from "../../../src/cli/chat/chatSession.ts"
import { CommandFailed } from "../../../src/cli/exit.ts"
import { command, final } from "../../support/blocks.ts"
import { folder } from "../../support/folder.ts"
import { plan } from "../../support/workflow.ts"
import { chatFlags, kernai, memoryScreen, ollama, start } from "../support.ts"

/** A folder with skills that leave a trace when they run. */
const place = Effect.map(folder, (folder) => {
  mkdirSync(join(folder, "skills"))
  writeFileSync(
    join(folder, "skills", "letters.ts"),
    `import { Effect, Schema } from "${import.meta.resolve("effect")}"
import * as Skill from "${import.meta.resolve("../../../src/Skill.ts")}"
import { appendFileSync, existsSync } from "node:fs"
const isOpen = () => existsSync(${JSON.stringify(join(folder, "open"))})
const trace = (line: string) => appendFileSync(${JSON.stringify(join(folder, "trace"))}, line + "\\n")
const input = Schema.Struct({ to: Schema.String })
export const send = Skill.make("send", {
  description: "Sends a letter",
  input,
  execute: ({ to }) => Effect.sync(() => { trace("sent to " + to); return "sent" })
})
export const deliver = Skill.make("deliver", {
  description: "Delivers a letter, and never ends while the road is closed",
  input,
  execute: ({ to }) =>
    Effect.suspend(() => { trace("on the way to " + to); return isOpen() ? Effect.succeed("delivered") : Effect.never })
})
`
  )
  return folder
})

const traceOf = (folder: string): string => {
  const file = join(folder, "trace")
  return existsSync(file) ? readFileSync(file, "utf8") : ""
}

const send = (to: string): string => command("send", { to })

/** Completes when a letter is on its way. */
const delivering = (folder: string): Effect.Effect<void> =>
  Effect.eventually(
    Effect.delay(
      Effect.suspend(() => (traceOf(folder) === "" ? Effect.fail("not yet") : Effect.void)),
      "5 millis"
    )
  )

/** Runs a chat in this process: the input is a list, and Ctrl-C an effect. */
const talk = Effect.fn("talk")(function* (
  folder: string,
  script: ReadonlyArray<unknown>,
  typed: ReadonlyArray<string>,
  options: Partial<ChatFlags> & {
    readonly interrupted?: Effect.Effect<void>
    readonly isTerminal?: boolean
    readonly isColored?: boolean
    /** What is typed when a question is asked; by default the next line of the input. */
    readonly answers?: ReadonlyArray<string>
  } = {}
) {
  const file = join(folder, "script.json")
  writeFileSync(file, JSON.stringify(script))
  const screen = memoryScreen(options.isColored)
  const left = [...typed]
  const answers = options.answers === undefined ? left : [...options.answers]
  const result = yield* chat({
    ...chatFlags,
    store: join(folder, "kept", "chat.db"),
    script: file,
    system: "You send letters.",
    skillsFrom: join(folder, "skills"),
    maxSteps: 10,
    dialect: "blocks",
    ...options
  }).pipe(
    Effect.result,
    Effect.provideService(Reader.LineReader, {
      read: () => Effect.sync(() => Option.fromUndefinedOr(left.shift())),
      ask: () => Effect.sync(() => Option.fromUndefinedOr(answers.shift())),
      interrupted: options.interrupted ?? Effect.never,
      isTerminal: options.isTerminal ?? true
    }),
    Effect.provide([screen.layer, NodeServices.layer])
  )
  const failure = Result.isFailure(result) && result.failure instanceof CommandFailed ? result.failure : undefined
  if (Result.isFailure(result) && failure === undefined) return yield* Effect.die(result.failure)
  return { out: screen.out(), progress: screen.progress(), failure, left }
})

describe("kernai chat", () => {
  it.live("holds a conversation, and continues it in another chat", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = ["Hello **you**.\nAnd more.", final("Second."), "Third."]
      const first = yield* talk(folder, script, ["hi", "", "again"])
      assert.strictEqual(first.out, "Hello **you**.\nAnd more.\nSecond.\n")
      assert.isUndefined(first.failure)
      const second = yield* talk(folder, script, ["/history", "and now?"])
      assert.strictEqual(second.out, `you  hi\n${first.out.slice(0, -"Second.\n".length)}you  again\nSecond.\nThird.\n`)
      assert.include(second.progress, "2 messages so far")
    })
  )

  it.live("keeps the flags of a conversation until other flags replace them", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = [final("Hello."), send("Oslo"), final("Sent."), final("Bye.")]
      yield* talk(folder, script, ["hi"])
      const none = {
        script: undefined,
        system: undefined,
        skillsFrom: undefined,
        maxSteps: undefined,
        dialect: undefined
      }
      const second = yield* talk(folder, script, ["write", "y"], none)
      assert.deepInclude(second, { out: "Sent.\n", failure: undefined })
      assert.strictEqual(traceOf(folder), "sent to Oslo\n")
      const third = yield* talk(folder, script, ["/skills", "bye"], { ...none, skills: false })
      assert.include(third.progress, "there are no skills\n")
      assert.strictEqual(third.out, "Bye.\n")
      const other = yield* talk(folder, script, [], { ...none, session: "other" })
      assert.include(other.failure?.reason ?? "", "no model is named")
    })
  )

  it.live("lets the model call the skills from programs with --code, and asks before each call", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const program = (to: string) =>
        `<block type="command" name="code">return [await send({ to: "${to}" }), await send({ to: "Bergen" })]</block>`
      const script = [program("Oslo"), final("Sent."), program("Hamar"), final("Again.")]
      const first = yield* talk(folder, script, ["write", "y", "y"], { code: true })
      assert.deepInclude(first, { out: "Sent.\n", failure: undefined })
      assert.strictEqual(traceOf(folder), "sent to Oslo\nsent to Bergen\n")
      const second = yield* talk(folder, script, ["write", "y", "y"])
      assert.deepInclude(second, { out: "Again.\n", failure: undefined })
      assert.include(traceOf(folder), "sent to Hamar\n")
    })
  )

  it.live("chats with the model of a provider", () =>
    Effect.gen(function* () {
      const { asked, env } = yield* ollama((body) => (body.includes("Hello.") ? final("Again.") : "Hello."))
      const network = ConfigProvider.layer(ConfigProvider.fromEnv({ env }))
      const chat = talk(yield* place, [], ["hi", "and now?"], { script: undefined, model: "ollama/x" })
      assert.deepInclude(yield* Effect.provide(chat, network), { out: "Hello.\nAgain.\n", failure: undefined })
      assert.include(asked[0]?.body, "You send letters.")
    })
  )

  it.live("uses colours on a terminal, unless a flag decides otherwise", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const note = (session: string, options: { readonly isColored?: boolean; readonly color?: boolean }) =>
        Effect.map(talk(folder, ["Hello."], [], { ...options, session }), ({ progress }) => progress)
      assert.include(yield* note("a", { isColored: true }), "\u001b[2msession a")
      assert.include(yield* note("b", { color: true }), "\u001b[2msession b")
      assert.notInclude(yield* note("c", { isColored: true, color: false }), "\u001b")
    })
  )

  it.live("asks before a call that may change something, and gives the model the reason of a denial", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = [
        send("Oslo"),
        final("Sent."),
        send("Rome"),
        final("Kept back."),
        send("Bern"),
        send("Nice"),
        "Both."
      ]
      const chat = yield* talk(folder, script, ["to Oslo", "what?", "y", "to Rome", "no not now", "two", "always"])
      assert.strictEqual(chat.out, "Sent.\nKept back.\nBoth.\n")
      assert.strictEqual(traceOf(folder), "sent to Oslo\nsent to Bern\nsent to Nice\n")
      assert.include(chat.progress, `? send asks to run: it may change something\n{\n  "to": "Oslo"\n}\n`)
      assert.match(chat.progress, /^ {2}command {3}send {2}\{"to": ?"Oslo"\}\n/m)
      assert.match(chat.progress, /^ {2}skill {5}send {2}.+ms: sent\n/m)
      assert.strictEqual(chat.progress.split("? send asks to run").length - 1, 3)
      const denied = yield* RunStore.RunStore.use((store) => store.load("default-2")).pipe(
        Effect.provide(SqlRunStore.layerSqlite(join(folder, "kept", "chat.db")))
      )
      assert.include(JSON.stringify(Option.getOrThrow(denied).turns), "not now")
    })
  )

  it.live("asks for the result of a call that somebody else runs, until it is JSON", () =>
    Effect.gen(function* () {
      const folder = yield* place
      writeFileSync(
        join(folder, "skills", "photo.ts"),
        `import { Schema } from "${import.meta.resolve("effect")}"
import * as Skill from "${import.meta.resolve("../../../src/Skill.ts")}"
export const photo = Skill.external("photo", {
  description: "Takes a photo",
  effects: "read",
  input: Schema.Struct({ of: Schema.String }),
  output: Schema.Struct({ url: Schema.String })
})
`
      )
      const script = [command("photo", { of: "the door" }), final("Seen.")]
      const chat = yield* talk(folder, script, ["look", "y", "y not json", `y {"url":"door.png"}`])
      assert.strictEqual(chat.out, "Seen.\n")
      assert.include(chat.progress, `"url"`)
      const seen = yield* RunStore.RunStore.use((store) => store.load("default-1")).pipe(
        Effect.provide(SqlRunStore.layerSqlite(join(folder, "kept", "chat.db")))
      )
      assert.include(JSON.stringify(Option.getOrThrow(seen).turns), "door.png")
    })
  )

  it.live("runs every call with --yes", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const chat = yield* talk(folder, [send("Oslo"), final("Sent.")], ["go"], { yes: true })
      assert.strictEqual(chat.out, "Sent.\n")
      assert.strictEqual(traceOf(folder), "sent to Oslo\n")
    })
  )

  it.live("chats with the agent of a file, whose settings other flags override", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const file = join(folder, "clerk.yaml")
      writeFileSync(file, "system_prompt: You send letters.\nmodel: ollama/llama3.1\nskills: [send]\nmax_steps: 2\n")
      const script = [send("Oslo"), final("It is sent.")]
      const options = { agent: file, system: undefined, maxSteps: undefined, dialect: undefined, yes: true }
      const first = yield* talk(folder, script, ["write"], options)
      assert.strictEqual(first.out, "It is sent.\n")
      assert.strictEqual(traceOf(folder), "sent to Oslo\n")
      const { progress } = yield* talk(folder, script, ["/skills"], options)
      assert.include(progress, "send (write)")
      assert.notInclude(progress, "deliver")
      const short = yield* talk(folder, script, ["write"], { ...options, maxSteps: 1, session: "short" })
      assert.include(short.progress, "failed: ")
      writeFileSync(file, "system_prompt: 3\nmodel: m\n")
      assert.include((yield* talk(folder, script, ["hi"], options)).failure?.reason, "system_prompt")
      writeFileSync(file, "system_prompt: x\nmodel: {id: m}\n")
      assert.include(
        (yield* talk(folder, script, ["hi"], { ...options, script: undefined })).failure?.reason,
        "names no provider"
      )
    })
  )

  it.live("speaks the tools dialect too", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = [{ text: "I send it.", calls: [{ name: "send", input: { to: "Oslo" } }] }, { text: "Done." }]
      const chat = yield* talk(folder, script, ["go", "y"], { dialect: "tools" })
      assert.strictEqual(chat.out, "I send it.\nDone.\n")
      assert.strictEqual(traceOf(folder), "sent to Oslo\n")
    })
  )

  it.live("does not use a line that was typed ahead as the answer to a question", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = [send("Oslo"), final("As you like."), final("Never mind.")]
      const chat = yield* talk(folder, script, ["go", "yes, do"], { answers: ["n"] })
      assert.strictEqual(chat.out, "As you like.\nNever mind.\n")
      assert.strictEqual(traceOf(folder), "")
    })
  )

  it.live("leaves an unanswered question to the next chat, with the exit code for waiting", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = [send("Oslo"), final("Sent.")]
      const first = yield* talk(folder, script, ["go"])
      assert.strictEqual(first.failure?.code, 3)
      assert.strictEqual(traceOf(folder), "")
      const second = yield* talk(folder, script, ["y"])
      assert.include(second.progress, "continuing: go")
      assert.strictEqual(second.out, "Sent.\n")
      assert.strictEqual(traceOf(folder), "sent to Oslo\n")
    })
  )

  it.live("ends with /exit at a question too, and leaves it to the next chat", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = [send("Oslo"), final("Sent.")]
      for (const exit of ["/exit", " /quit "]) {
        const chat = yield* talk(folder, script, ["go"], { answers: [exit, "y"] })
        assert.strictEqual(chat.failure?.message, "the session default waits for you")
        assert.strictEqual(traceOf(folder), "")
      }
      const next = yield* talk(folder, script, [], { answers: ["y"] })
      assert.strictEqual(next.out, "Sent.\n")
    })
  )

  it.live("stops an answer at Ctrl-C, and asks about the call that was cut off (DR-16, DR-17)", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = [`<block type="command" name="deliver">{"to": "Oslo"}</block>`, final("It may be there.")]
      const interrupted = delivering(folder)
      const first = yield* talk(folder, script, ["go"], { yes: true, interrupted })
      assert.include(first.progress, "stopped; continue it with /retry")
      const of = (verb: string, ...more: ReadonlyArray<string>) =>
        kernai(["runs", verb, "default-1", "--store", `sqlite:${join(folder, "kept", "chat.db")}`, ...more])
      const shown = yield* of("show")
      assert.include(shown.out, `! default-1:t1.0: deliver was started, its end is unknown\n{\n  "to": "Oslo"\n}\n`)
      const agent = ["--script", join(folder, "script.json"), "--skills-from", join(folder, "skills")]
      const refused = yield* of("resume", "--in-flight", "fail", ...agent)
      assert.deepInclude(refused, {
        code: 1,
        error: "kernai: calls in flight with an unknown outcome: default-1:t1.0\n"
      })
      assert.include((yield* of("show")).out, "status    failed: calls in flight")
      const second = yield* talk(folder, script, ["leave"], { yes: true })
      assert.include(second.progress, "? deliver was cut off; it may have run")
      assert.strictEqual(second.out, "It may be there.\n")
      assert.strictEqual(traceOf(folder), "on the way to Oslo\n")
    })
  )

  it.live("leaves a call that was cut off to 'kernai runs resume', which makes it again (DR-17)", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = [command("deliver", { to: "Oslo" }), final("It is there.")]
      yield* talk(folder, script, ["go"], { yes: true, interrupted: delivering(folder) })
      writeFileSync(join(folder, "open"), "")
      const store = ["--store", `sqlite:${join(folder, "kept", "chat.db")}`]
      const agent = ["--script", join(folder, "script.json"), "--skills-from", join(folder, "skills")]
      const resumed = yield* kernai(["runs", "resume", "default-1", "-q", "--in-flight", "retry", ...store, ...agent])
      assert.deepInclude(resumed, { code: 0, out: "It is there.\n", error: "" })
      assert.strictEqual(traceOf(folder), "on the way to Oslo\non the way to Oslo\n")
    })
  )

  it.live("shows the call of a task that was cut off with its run and with the task", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = [plan(["a"]), command("deliver", { to: "Oslo" }), final("It may be there.")]
      yield* talk(folder, script, ["go"], { yes: true, interrupted: delivering(folder) })
      const store = ["--store", `sqlite:${join(folder, "kept", "chat.db")}`]
      const listed = yield* kernai(["runs", "list", ...store])
      assert.match(listed.out, /^run .*\ndefault-1 .*\n$/)
      assert.strictEqual(listed.progress, "")
      for (const id of ["default-1", "default-1:t1/a"]) {
        const shown = yield* kernai(["runs", "show", id, ...store])
        assert.include(shown.out, "! default-1:t1/a:t2.0: deliver was started, its end is unknown", id)
      }
    })
  )

  it.live("repeats a call that was cut off if the person decides so, and waits without an answer (DR-17)", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = [`<block type="command" name="deliver">{"to": "Oslo"}</block>`, final("Gone.")]
      let times = 0
      const interrupted = Effect.suspend(() => {
        times++
        const isOnItsWay = () => traceOf(folder).split("\n").length > times
        return Effect.eventually(
          Effect.delay(
            Effect.suspend(() => (isOnItsWay() ? Effect.void : Effect.fail("not yet"))),
            "5 millis"
          )
        )
      })
      const chat = yield* talk(folder, script, ["go", "/retry", "run it", "/retry"], { yes: true, interrupted })
      assert.strictEqual(traceOf(folder), "on the way to Oslo\non the way to Oslo\n")
      assert.strictEqual(chat.failure?.code, 3)
    })
  )

  it.live("takes the next message after an answer that was stopped", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = [`<block type="command" name="deliver">{"to": "Oslo"}</block>`, "Never mind."]
      let answers = 0
      const interrupted = Effect.suspend(() => (answers++ === 0 ? delivering(folder) : Effect.never))
      const chat = yield* talk(folder, script, ["go", "leave it", "/history"], { yes: true, interrupted })
      assert.strictEqual(chat.out, "Never mind.\nyou  go\n(no answer yet)\nyou  leave it\nNever mind.\n")
    })
  )

  it.live("reports a failure and continues", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const chat = yield* talk(folder, ["One."], ["a", "b", "/retry", "/history"])
      assert.strictEqual(chat.progress.split("failed: scripted: the script has no reply left after 1").length - 1, 2)
      assert.strictEqual(chat.out, "One.\nyou  a\nOne.\nyou  b\n(failed)\n")
    })
  )

  it.live("ends with exit code 1 at a failure without a terminal, and reads no further", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const piped = (script: ReadonlyArray<unknown>, ...typed: ReadonlyArray<string>) =>
        talk(folder, script, typed, { isTerminal: false })
      const failed = yield* piped(["One."], "a", "b", "c")
      assert.strictEqual(failed.out, "One.\n")
      assert.strictEqual(failed.failure?.code, 1)
      assert.strictEqual(failed.failure?.reason, "the last answer of the session default failed")
      assert.deepStrictEqual(failed.left, ["c"])
      const again = yield* piped(["One."], "/exit")
      assert.strictEqual(again.failure?.code, 1)
      const left = yield* piped(["One."], "/new")
      assert.strictEqual(left.failure?.code, 1)
      assert.strictEqual(left.failure?.reason, "the last answer of the session default failed")
      const other = yield* piped(["One."], "/new", "c")
      assert.isUndefined(other.failure)
      assert.strictEqual(other.out, "One.\n")
    })
  )

  it.live("has commands for sessions, skills and help", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const typed = [
        "/help",
        "/skills",
        "/session",
        "/retry",
        "/history",
        "hi",
        "/new",
        "//hi",
        "/new plans",
        "/new a/b",
        "yes",
        "/sessions",
        "/session default",
        "/nothing",
        "/history",
        "/exit",
        "never"
      ]
      const chat = yield* talk(folder, ["Hello."], typed)
      assert.include(chat.progress, "/retry")
      assert.include(chat.progress, "send (write, asks before it runs)  Sends a letter\n")
      assert.include(chat.progress, "\ndefault\nthere is nothing to continue\nno messages yet\n")
      assert.include(chat.progress, "session default.2;")
      assert.include(chat.progress, "session plans;")
      assert.include(chat.progress, "* plans\n")
      assert.include(chat.progress, "  default.2\n")
      assert.include(chat.progress, "there is no /nothing")
      assert.strictEqual(chat.out, "Hello.\nHello.\nHello.\nyou  hi\nHello.\n")
      assert.deepStrictEqual(chat.left, ["never"])
      const second = yield* talk(folder, ["Hello."], ["/skills", "/history"], {
        session: "default.2",
        skillsFrom: undefined,
        skills: false
      })
      assert.include(second.progress, "there are no skills\n")
      assert.strictEqual(second.out, "you  /hi\nHello.\n")
    })
  )

  it.live("escapes control characters in the text of a model or a call (S-19)", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = [`a\u001b[2J${send("\\u001b]0;b\\u0007\\u202e")}`, final("c\u001b[31m\u0007d"), "\u009be"]
      const chat = yield* talk(folder, script, ["x\u001b[1m", "y", "z", "/history"])
      assert.notMatch(chat.out + chat.progress, /(?!\n)[\p{Cc}\p{Cf}]/u)
      assert.include(chat.out, "d\n")
    })
  )

  it.live("refuses a script without replies, a wrong session name and a missing folder of skills", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const empty = yield* talk(folder, [], [])
      assert.strictEqual(empty.failure?.code, 2)
      assert.include(empty.failure?.reason ?? "", "is not a JSON list of replies")
      const nameless = yield* talk(folder, ["a"], [], { session: "../x" })
      assert.strictEqual(nameless.failure?.code, 2)
      const noSkills = yield* talk(folder, ["a"], [], { skillsFrom: join(folder, "none") })
      assert.strictEqual(noSkills.failure?.code, 2)
    })
  )

  it.live("finds the last message of a session", () =>
    Effect.gen(function* () {
      for (const count of [0, 1, 2, 3, 7, 8, 9]) {
        const folder = yield* place
        yield* talk(folder, ["Hello."].concat(Array(10).fill("Hello.")), Array(count).fill("hi"))
        const found = yield* Session.size("default").pipe(
          Effect.provide(SqlRunStore.layerSqlite(join(folder, "kept", "chat.db")))
        )
        assert.strictEqual(found, count)
      }
    })
  )
})

// ---------------------------------------------------------------- processes

/** Starts a chat in a process of its own, with its input in a pipe. */
const started = (folder: string) =>
  start(["chat", "--script", "script.json", "--skills-from", "skills", "--session", "s"], { cwd: folder })

describe("kernai chat as a process", () => {
  it.live(
    "is killed while it asks, and continues in a new process",
    () =>
      Effect.gen(function* () {
        const folder = yield* place
        const script = ["Hello.", send("Oslo"), final("It is on its way."), "Bye."]
        writeFileSync(join(folder, "script.json"), JSON.stringify(script))
        const first = yield* started(folder)
        first.type("hi\n")
        yield* first.until("Hello.")
        first.type("write to Oslo\n")
        yield* first.until("allow it?")
        first.kill("SIGKILL")
        assert.strictEqual((yield* first.ended).code, "SIGKILL")
        assert.strictEqual(traceOf(folder), "")

        const second = yield* started(folder)
        yield* second.until("allow it?")
        assert.include(second.shown(), "continuing: write to Oslo")
        second.type("y\n")
        yield* second.until("It is on its way.")
        second.type("thanks\n")
        yield* second.until("Bye.")
        second.end()
        assert.strictEqual((yield* second.ended).code, 0)
        assert.strictEqual(traceOf(folder), "sent to Oslo\n")
        assert.notInclude(second.shown(), "\u001b")
      }),
    60_000
  )

  it.live(
    "answers the last line of a pipe, with or without a line end",
    () =>
      Effect.gen(function* () {
        const folder = yield* place
        writeFileSync(join(folder, "script.json"), JSON.stringify(["First.", "Second."]))
        const only = yield* started(folder)
        only.type("one\r\ntwö")
        only.end()
        assert.strictEqual((yield* only.ended).code, 0)
        assert.include(only.shown(), "First.")
        assert.include(only.shown(), "Second.")
      }),
    60_000
  )

  it.live(
    "ends at SIGINT, with the exit code for interrupted",
    () =>
      Effect.gen(function* () {
        const folder = yield* place
        writeFileSync(join(folder, "script.json"), JSON.stringify([send("Oslo")]))
        const only = yield* started(folder)
        only.type("go\n")
        yield* only.until("allow it?")
        only.kill("SIGINT")
        assert.strictEqual((yield* only.ended).code, 130)
      }),
    60_000
  )
})
