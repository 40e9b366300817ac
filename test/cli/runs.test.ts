/**
 * Stored runs from the command line: every step that runs something is a process of its own.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { command, final } from "../support/blocks.ts"
import { quickly } from "../support/longRun.ts"
import * as Postgres from "../support/postgres.ts"
import { folder } from "../support/folder.ts"
import { call, type Ended, kernai, start } from "./support.ts"

/** A folder with a scripted model, and a skill that leaves a trace when it runs. */
const place = Effect.map(folder, (folder) => {
  mkdirSync(join(folder, "skills"))
  writeFileSync(
    join(folder, "skills", "letters.ts"),
    `import { Effect, Schema } from "${import.meta.resolve("effect")}"
import * as Skill from "${import.meta.resolve("../../src/Skill.ts")}"
import * as MediaStore from "${import.meta.resolve("../../src/MediaStore.ts")}"
import { appendFileSync } from "node:fs"
const trace = (text) => appendFileSync(${JSON.stringify(join(folder, "trace"))}, text + "\\n")
export const send = Skill.make("send", {
  description: "Sends a letter",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.sync(() => { trace(to); return "sent" })
})
export const weigh = Skill.make("weigh", {
  description: "Weighs a picture",
  input: Schema.Struct({ picture: MediaStore.Reference }),
  effects: "read",
  execute: ({ picture }) => Effect.map(
    MediaStore.MediaStore.use((store) => store.bytes(picture.id)),
    (bytes) => { trace(picture.mimeType + " of " + bytes.length + " bytes"); return bytes.length }
  )
})
`
  )
  const script = ['<block type="command" name="send">{"to": "Oslo"}</block>', '<block type="final">All done.</block>']
  writeFileSync(join(folder, "script.json"), JSON.stringify(script))
  return folder
})

/** A picture in the folder, and a model that writes a letter and then weighs it. */
const sendPicture = (folder: string) => {
  const picture = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47]), Buffer.alloc(100_000, 7)])
  writeFileSync(join(folder, "cat.png"), picture)
  const id = `media_${createHash("sha1").update(picture).digest("hex").slice(0, 12)}`
  const script = [
    '<block type="command" name="send">{"to": "Oslo"}</block>',
    `<block type="command" name="weigh">{"picture": "${id}"}</block>`,
    '<block type="final">All done.</block>'
  ]
  writeFileSync(join(folder, "script.json"), JSON.stringify(script))
}

const weighed = "Oslo\nimage/png of 100004 bytes\n"

const traceOf = (folder: string): string => {
  const file = join(folder, "trace")
  return existsSync(file) ? readFileSync(file, "utf8") : ""
}

/** Calls `kernai` in a process of its own, in the folder. */
const callIn = (folder: string, args: ReadonlyArray<string>) => call(args, { cwd: folder })

/** The store, as seen from a process in the folder and from this one. */
const sqlite = ["--store", "sqlite:kept/runs.db"]
const sqliteOf = (folder: string) => ["--store", `sqlite:${join(folder, "kept", "runs.db")}`]
const agent = ["--script", "script.json", "--skills-from", "skills"]
const agentOf = (folder: string) => ["--script", join(folder, "script.json"), "--skills-from", join(folder, "skills")]

/** Returns the id of a run, from the output of a process or the progress of a call. */
const idOf = ({ error, out, progress = "" }: Ended & { readonly progress?: string }): string =>
  /run_[0-9a-f]+/.exec(out + progress + error)?.[0] ?? ""

describe("a stored run", () => {
  it.live(
    "is cancelled by id, and its events are followed to the cancellation",
    () =>
      Effect.gen(function* () {
        const folder = yield* place
        const id = idOf(yield* callIn(folder, ["run", "--create", "Write to Oslo", ...sqlite, ...agent]))
        const cancelled = yield* kernai(["runs", "cancel", id, "--by", "Ada", "--reason", "no", ...sqliteOf(folder)])
        assert.strictEqual(cancelled.out, `cancelled  ${id}\n`)
        const shown = yield* kernai(["runs", "show", id, ...sqliteOf(folder)])
        assert.include(shown.out, "status    cancelled by Ada: no\n")
        const followed = yield* kernai([
          "runs",
          "follow",
          id.slice(0, 12),
          "--json",
          "--after",
          "1",
          ...sqliteOf(folder)
        ])
        const events = followed.out
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line))
        assert.strictEqual(events[0].revision, 2)
        assert.deepInclude(events.at(-1), { type: "run_cancelled", by: "Ada", reason: "no" })
        const unknown = yield* kernai(["runs", "cancel", "unknown", ...sqliteOf(folder)])
        assert.include(unknown.error, "there is no run unknown in this store")
      }).pipe(Effect.scoped),
    60_000
  )

  it.live(
    "pauses in one process, is approved in another and finished by a third (DR-22)",
    () =>
      Effect.gen(function* () {
        const folder = yield* place
        const asked = yield* callIn(folder, ["run", "--create", "Write to Oslo", ...sqlite, ...agent])
        assert.strictEqual(asked.code, 3)
        const id = idOf(asked)
        const how = `  kernai runs approve ${id} --store sqlite:kept/runs.db\n`
        assert.include(asked.error, `the run ${id} waits for a person: approval of send\n${how}`)
        assert.strictEqual(traceOf(folder), "")

        const listed = yield* kernai(["runs", "list", "--status", "waiting", "--json", ...sqliteOf(folder)])
        assert.strictEqual(JSON.parse(listed.out).runId, id)
        const shown = yield* kernai(["runs", "show", id, ...sqliteOf(folder)])
        assert.include(shown.out, `\nnext      kernai runs approve ${id} --store sqlite:`)
        assert.include(shown.out, `? ${id}:t1.0: send asks to run: it may change something\n{\n  "to": "Oslo"\n}\n`)

        const revision = /revision (\d+)/.exec(shown.out)?.[1] ?? ""
        const stale = `run '${id}' is at revision ${revision}, expected 1`
        for (const verb of ["approve", "deny"]) {
          const refused = yield* kernai(["runs", verb, id, "--revision", "1", ...sqliteOf(folder)])
          assert.notStrictEqual(refused.code, 0)
          assert.include(refused.error, stale)
        }

        const approved = yield* callIn(folder, [
          "runs",
          "approve",
          id,
          "--revision",
          revision,
          "--by",
          "Ada",
          "--input",
          '{"to":"Rome"}',
          ...sqlite
        ])
        assert.strictEqual(approved.code, 0)
        assert.include(approved.out, `approved  ${id}:t1.0  send\n`)
        assert.strictEqual(traceOf(folder), "")

        const taken = ["runs", "resume", id, "--quiet", "--revision"]
        const script = ["--script", join(folder, "script.json")]
        const old = yield* kernai([...taken, revision, ...sqliteOf(folder), ...script])
        assert.strictEqual(old.code, 1)
        assert.strictEqual(
          old.error,
          `kernai: run '${id}' is at revision ${Number(revision) + 1}, expected ${revision}\n`
        )
        // The answer is not spent where the skill is missing.
        mkdirSync(join(folder, "none"))
        const elsewhere = ["--skills-from", join(folder, "none")]
        const without = yield* kernai(["runs", "resume", id, ...sqliteOf(folder), ...elsewhere])
        assert.strictEqual(without.code, 2)
        const missing = "the skill 'send' was allowed but is not here: give its folder with --skills-from"
        assert.include(without.error, missing)
        const worker = yield* kernai(["worker", "--once", ...sqliteOf(folder), ...script])
        assert.include(worker.out, `${id}  ${missing}`)
        assert.strictEqual(worker.code, 1)
        const finished = yield* callIn(folder, [...taken, `${Number(revision) + 1}`, ...sqlite])
        assert.deepStrictEqual(finished, { code: 0, out: "All done.\n", error: "" })
        assert.strictEqual(traceOf(folder), "Rome\n")
        const resumed = yield* kernai(["runs", "resume", id, ...sqliteOf(folder), ...script])
        assert.match(resumed.progress, new RegExp(`^resuming ${id} at revision \\d+\nanswer`))

        const again = yield* kernai(["runs", "approve", id, "--revision", revision, ...sqliteOf(folder)])
        assert.include(again.error, `expected ${revision}`)
        const late = yield* kernai(["runs", "deny", id, ...sqliteOf(folder)])
        assert.strictEqual(late.code, 2)
        assert.include(late.error, "has no open question")

        const exported = yield* kernai(["runs", "export", id, ...sqliteOf(folder)])
        const records = exported.out.trimEnd().split("\n")
        assert.isAbove(records.length, 3)
        for (const record of records) assert.strictEqual(JSON.parse(record).runId, id)
        assert.include(exported.out, '"by":"Ada"')

        const replayed = yield* kernai(["runs", "replay", id, ...sqliteOf(folder)])
        assert.strictEqual(replayed.code, 0)
        assert.include(replayed.out, "no difference: ")
        const audit = yield* kernai(["runs", "show", id, ...sqliteOf(folder)])
        assert.include(audit.out, '  send  {"to":"Rome"}\n    approved by Ada, with another input\n    sent\n')
        assert.strictEqual(traceOf(folder), "Rome\n")
      }),
    60_000
  )

  it.live(
    "is run by a worker once it is submitted or answered, and the worker ends at SIGTERM (R-17)",
    () =>
      Effect.gen(function* () {
        const folder = yield* place
        const submitted = yield* kernai(["run", "--create", "Write to Oslo", "--detach", ...sqliteOf(folder)])
        const id = submitted.out.trim()
        assert.match(id, /^run_[0-9a-f]+$/)

        const first = yield* kernai(["worker", "--once", ...sqliteOf(folder), ...agentOf(folder)])
        assert.strictEqual(first.code, 3)
        assert.strictEqual(first.error, "kernai: a run waits for a person\n")
        assert.include(first.out, `${id}  run '${id}' is paused: approval_required\n`)

        const denied = yield* kernai(["runs", "deny", id, "--reason", "not today", ...sqliteOf(folder)])
        assert.include(denied.out, `denied  ${id}:t1.0  send\n`)

        const second = yield* start(["worker", ...sqlite, ...agent], { cwd: folder })
        yield* second.until(`${id}  completed\n`)
        second.kill("SIGTERM")
        assert.strictEqual((yield* second.ended).code, 130)
        assert.strictEqual(traceOf(folder), "")
        const shown = yield* kernai(["runs", "show", id, ...sqliteOf(folder)])
        assert.include(shown.out, "status    completed")
        assert.include(shown.out, "    denied by the command line: not today\n")
        const replayed = yield* kernai(["runs", "replay", id, ...sqliteOf(folder)])
        assert.include(replayed.out, "no difference: ", replayed.error)
      }),
    60_000
  )

  it.live("has one call approved of several, or all that wait, and another input for one only", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const letters =
        command("send", { to: "Oslo" }) + command("send", { to: "Rome" }) + command("send", { to: "Bern" })
      writeFileSync(join(folder, "script.json"), JSON.stringify([letters, final("All done.")]))
      const id = idOf(yield* kernai(["run", "--create", "Write", ...sqliteOf(folder), ...agentOf(folder)]))
      const approve = (...args: ReadonlyArray<string>) => kernai(["runs", "approve", id, ...args, ...sqliteOf(folder)])
      const input = ["--input", '{"to":"Nice"}']
      const next = (verb: string) => `kernai runs ${verb} ${id} --store ${sqliteOf(folder)[1]}\n`
      assert.deepInclude(yield* approve(...input), { code: 2, error: "kernai: --input needs the id of one call\n" })
      const one = yield* approve(`${id}:t1.1`, ...input)
      assert.deepInclude(one, { out: `approved  ${id}:t1.1  send\n`, progress: `2 more wait: ${next("show")}` })
      const wrong = yield* approve("t1.7")
      assert.deepInclude(wrong, { code: 2, error: "kernai: there is no call t1.7 that waits in this run\n" })
      const rest = yield* approve("t1.0", ":t1.2")
      assert.strictEqual(rest.out, [0, 2].map((call) => `approved  ${id}:t1.${call}  send\n`).join(""))
      assert.strictEqual(rest.progress, `a worker continues the run, or: ${next("resume")}`)
      yield* kernai(["runs", "resume", id, ...sqliteOf(folder)])
      assert.strictEqual(traceOf(folder), "Oslo\nNice\nBern\n")
    })
  )

  it.live("sets the exit code of a worker that runs once", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const detached = ["--detach", ...sqliteOf(folder)]
      const worker = ["worker", "--once", "--script", join(folder, "script.json"), ...sqliteOf(folder)]
      assert.match((yield* kernai(["run", "--create", "Write to Oslo", "--quiet", ...detached])).out, /^run_\w+\n$/)
      assert.match(
        (yield* kernai(["run", "--create", "Write to Rome", "--json", ...detached])).out,
        /^\{"runId":"run_\w+"\}\n$/
      )
      const failed = yield* kernai([...worker, "--max-steps", "1"])
      assert.strictEqual(failed.code, 1)
      assert.strictEqual(failed.error, "kernai: a run failed\n")
      assert.lengthOf(failed.out.match(/^run_\w+ {2}.*maximum.*$/gm) ?? [], 2)
      const nothing = yield* kernai([...worker, "--concurrency", "1", "--lease", "1"])
      assert.deepStrictEqual([nothing.code, nothing.error], [0, ""])
    })
  )

  it.live("is continued with the agent of another file only for a reason", () =>
    Effect.gen(function* () {
      const folder = yield* place
      const script = ["--script", join(folder, "script.json")]
      const ran = yield* kernai(["run", "--create", "Write to Oslo", "--yes", ...sqliteOf(folder), ...agentOf(folder)])
      const forked = idOf(yield* kernai(["runs", "fork", idOf(ran), "--revision", "1", ...sqliteOf(folder)]))
      const other = join(folder, "librarian.json")
      writeFileSync(other, JSON.stringify({ name: "librarian", system_prompt: "You lend books.", model: "scripted" }))
      const resume = ["runs", "resume", forked, "-q", "-y", "--agent", other, ...script, ...sqliteOf(folder)]
      const refused = yield* kernai(resume)
      assert.notStrictEqual(refused.code, 0)
      assert.include(refused.error, "belongs to the agent 'agent', so 'librarian' does not resume it")
      const resumed = yield* kernai([...resume, "--as", "the librarian writes now"])
      assert.deepStrictEqual([resumed.code, resumed.out], [0, "All done.\n"])
    })
  )

  it.live(
    "is forked, and found by the words of its answer, in a folder of files too",
    () =>
      Effect.gen(function* () {
        const folder = yield* place
        const files = ["--store", `file:${join(folder, "kept")}`]
        const run = yield* kernai(["run", "--create", "Write to Oslo", "--yes", ...files, ...agentOf(folder)])
        assert.strictEqual(run.code, 0)
        assert.strictEqual(traceOf(folder), "Oslo\n")
        const forked = yield* kernai(["runs", "fork", idOf(run), "--revision", "1", ...files])
        assert.strictEqual(forked.code, 0)
        assert.notStrictEqual(idOf(forked), idOf(run))
        const resumed = yield* kernai(["runs", "resume", idOf(forked), "-q", "-y", ...files, ...agentOf(folder)])
        assert.strictEqual(resumed.out, "All done.\n")
        assert.strictEqual(traceOf(folder), "Oslo\nOslo\n")
        const found = yield* kernai(["runs", "list", "--search", "done ALL", "--json", ...files])
        assert.strictEqual(found.out.trimEnd().split("\n").length, 2)
        const none = yield* kernai(["runs", "list", "--search", "nothing", "--json", ...files])
        assert.strictEqual(none.out, "")
      }),
    60_000
  )

  const places: ReadonlyArray<
    readonly [name: string, isThere: boolean, where: (folder: string) => Effect.Effect<string, unknown, Scope.Scope>]
  > = [
    ["SQLite", true, (folder) => Effect.succeed(`sqlite:${join(folder, "kept", "runs.db")}`)],
    ["files", true, (folder) => Effect.succeed(`file:${join(folder, "kept")}`)],
    ["PostgreSQL", Postgres.available, () => Effect.map(Postgres.database, ({ url }) => `pg:${url}`)]
  ]
  for (const [name, isThere, where] of quickly(places, ([name]) => name === "SQLite")) {
    it.live.skipIf(!isThere)(
      `continues in another process with the picture it was sent, stored in ${name} (CP-11)`,
      () =>
        Effect.gen(function* () {
          const folder = yield* place
          const store = ["--store", yield* where(folder)]
          sendPicture(folder)
          const asked = yield* callIn(folder, [
            "run",
            "--create",
            "What is this?",
            "--image",
            "cat.png",
            ...store,
            ...agent
          ])
          assert.strictEqual(asked.code, 3, asked.error)
          const runId = idOf(asked)
          rmSync(join(folder, "cat.png"))
          assert.strictEqual((yield* kernai(["runs", "approve", runId, ...store])).code, 0)
          const finished = yield* callIn(folder, ["runs", "resume", runId, "--quiet", ...store])
          assert.deepStrictEqual(finished, { code: 0, out: "All done.\n", error: "" })
          assert.strictEqual(traceOf(folder), weighed)
        }),
      60_000
    )
  }

  it.live(
    "is forked with its picture, and submitted to a worker with another (CP-11)",
    () =>
      Effect.gen(function* () {
        const folder = yield* place
        sendPicture(folder)
        const asked = yield* kernai([
          "run",
          "--create",
          "What is this?",
          "--root",
          folder,
          "--image",
          "cat.png",
          "-y",
          ...sqliteOf(folder),
          ...agentOf(folder)
        ])
        assert.strictEqual(traceOf(folder), weighed)
        const forked = yield* kernai(["runs", "fork", idOf(asked), "--revision", "1", ...sqliteOf(folder)])
        const again = yield* kernai([
          "runs",
          "resume",
          idOf(forked),
          "-q",
          "-y",
          ...sqliteOf(folder),
          ...agentOf(folder)
        ])
        assert.strictEqual(again.out, "All done.\n")
        assert.strictEqual(traceOf(folder), weighed.repeat(2))

        const detached = yield* kernai([
          "run",
          "--create",
          "And this?",
          "--root",
          folder,
          "--image",
          "cat.png",
          "--detach",
          ...sqliteOf(folder)
        ])
        rmSync(join(folder, "cat.png"))
        const worked = yield* callIn(folder, ["worker", "--once", "--yes", ...sqlite, ...agent])
        assert.include(worked.out, `${detached.out.trim()}  completed\n`)
        assert.strictEqual(traceOf(folder), weighed.repeat(3))
      }),
    60_000
  )

  const mistakes: ReadonlyArray<readonly [args: ReadonlyArray<string>, reason: string]> = [
    [["runs", "list", "--store", "redis:x"], "--store must be sqlite:FILE, file:FOLDER or pg:URL"],
    [["runs", "list", "--store", "elsewhere"], "there is no store at elsewhere"],
    ...[["list"], ...["show", "approve", "deny", "fork", "replay", "export"].map((verb) => [verb, "x"])].map(
      (args): readonly [args: ReadonlyArray<string>, reason: string] => [
        ["runs", ...args, "--store", "sqlite:missing.db"],
        "there is no store at missing.db"
      ]
    ),
    [["runs", "resume", "x", "--model", "ollama/x", "--store", "sqlite:missing.db"], "there is no store at missing.db"],
    [["runs", "list", "--store", "file:missing.db"], "there is no store at missing.db"],
    [["runs", "list", "--store", "pg:me:SECRET@host"], "--store pg: needs a URL, postgres://host/database"],
    [["run", "Hello", "--detach"], "--detach needs a --store"],
    ...[
      ["--system", "Be brief."],
      ["--yes"],
      ["--model", "ollama/x"],
      ["--script", "none.json"],
      ["--max-steps", "3"]
    ].map((flags): readonly [args: ReadonlyArray<string>, reason: string] => [
      ["run", "--create", "Hello", "--detach", "--store", "sqlite:runs.db", ...flags],
      `${flags[0]} is for 'kernai worker'`
    ]),
    [["run", "--model", "ollama/x", "--store", "sqlite:runs.db"], "a question is missing"],
    [["worker", "--create", "--store", "sqlite:runs.db"], "no model is named: give --model"],
    [
      ["worker", "--create", "--store", "sqlite:runs.db", "--model", "ollama/x", "--agent-name", "w.yaml"],
      "--agent-name takes a name; --agent takes a file"
    ],
    [["chat"], "no model is named: give --model"],
    [["chat", "--model", "ollama/x", "--script", "none.json"], "--model and --script cannot be used together"],
    [["chat", "--script", "none.json", "--max-steps", "1"], "none.json cannot be read (NotFound)"],
    [
      ["chat", "--script", "none.json", "--no-skills", "--skills-from", "skills"],
      "--no-skills and --skills-from cannot be used together"
    ],
    [
      [
        "worker",
        "--create",
        "--script",
        "none.json",
        "--no-skills",
        "--skills-from",
        "skills",
        "--store",
        "sqlite:runs.db"
      ],
      "--no-skills and --skills-from cannot be used together"
    ],
    [["chat", "--script", "."], `${basename(process.cwd())} is `],
    [["scenario", "matrix", "nowhere", "--concurrency", "1", "--timeout", "1"], "nowhere cannot be read"],
    [["scenario", "run", ".", "--no-logs", "--log", "logs"], "--no-logs and --log cannot be used together"]
  ]
  const numbers = [
    ["runs", "list", "--store", "sqlite:runs.db", "--limit"],
    ["worker", "--create", "--script", "none.json", "--store", "sqlite:runs.db", "--concurrency"],
    ["worker", "--create", "--script", "none.json", "--store", "sqlite:runs.db", "--lease"],
    ["run", "Hello", "--script", "none.json", "--max-steps"],
    ["chat", "--script", "none.json", "--max-steps"],
    ["scenario", "matrix", ".", "--concurrency"],
    ["scenario", "matrix", ".", "--timeout"]
  ]
  it.live.each(numbers)("is not touched by a command with a number below 1: %j", (args) =>
    Effect.gen(function* () {
      const { code, error, out } = yield* kernai([...args, "0"])
      assert.deepStrictEqual([code, out], [2, ""])
      assert.include(error, `Invalid value for flag ${args.at(-1)}: "0". Expected: a number from 1`)
    })
  )

  it.live.each(mistakes)("is not touched by a wrong call, which says why in a line: %j", ([args, reason]) =>
    Effect.gen(function* () {
      const { code, error, out } = yield* kernai(args)
      assert.strictEqual(code, 2)
      assert.strictEqual(out, "")
      assert.match(error, /^kernai: .*\n$/)
      assert.include(error, reason)
      assert.notInclude(error, "SECRET")
      assert.isFalse(existsSync("missing.db") || existsSync("runs.db"))
    })
  )

  it.live("is shown with its origin when it is a fork, and exported to a new file only", () =>
    Effect.gen(function* () {
      const folder = yield* place
      writeFileSync(join(folder, "script.json"), JSON.stringify(["Done."]))
      const store = ["--store", `file:${join(folder, "kept")}`]
      const agent = ["--script", join(folder, "script.json"), "--no-skills"]
      const { runId } = JSON.parse((yield* kernai(["run", "--create", "Hello", "--json", ...store, ...agent])).out)
      const seen = (yield* kernai(["run", "--create", "Hello ".repeat(50), ...store, ...agent])).progress.split("\n")
      assert.match(seen.at(1) ?? "", /^question {2}Hello .{80,89}…$/)
      assert.match(seen.at(-3) ?? "", /^answer {2}1 turn, 0 calls, tokens not reported, [<\d.]+ m?s$/)
      const fork = idOf(yield* kernai(["runs", "fork", runId, "--revision", "3", ...store]))
      const shown = yield* kernai(["runs", "show", fork, ...store])
      assert.include(shown.out, `fork of   ${runId}, revision 3\nagent     agent\nstatus    running, after `)
      const whole = yield* kernai(["runs", "show", runId, ...store])
      assert.match(
        whole.out,
        /\nstatus {4}completed: model_done\n[^]*\nquestion {2}Hello\n\nagent [^]*\n\nturn 1 .*: prose\n\nDone\.\n$/
      )
      for (const revision of ["0", "8"]) {
        const beyond = yield* kernai(["runs", "fork", runId, "--revision", revision, ...store])
        assert.deepInclude(beyond, { code: 2, out: "" })
        assert.include(beyond.error, "--revision is a number from 1 to 7, the revision of the run")
      }
      writeFileSync(join(folder, "script.json"), JSON.stringify([command("nobody"), final("Nobody is there.")]))
      const missed = idOf(yield* kernai(["run", "--create", "Hello", ...store, ...agent.slice(0, 2)]))
      const failed = yield* kernai(["runs", "show", missed, ...store])
      assert.match(failed.out, /^turn 1 .*\n {2}nobody {2}.*\n {4}\w+: .*nobody/m)
      const file = join(folder, "out.jsonl")
      const exported = yield* kernai(["runs", "export", runId, file, ...store])
      assert.deepInclude(exported, { code: 0, out: "", progress: `7 records in ${file}\n` })
      assert.lengthOf(readFileSync(file, "utf8").trimEnd().split("\n"), 7)
      const none = yield* kernai(["runs", "list", "--status", "failed", ...store])
      assert.deepInclude(none, { code: 0, out: "", progress: "no runs found\n" })
      for (const [args, reason] of [
        [["export", runId, file], "already exists"],
        [["export", runId, join(folder, "none", "out.jsonl")], "cannot be written"],
        [["approve", runId, "--input", "{"], "--input must be a JSON object"],
        [["approve", runId, "--input", "[1]"], "--input must be a JSON object or a JSON text"],
        [["show", "none"], "there is no run none in this store"],
        [["approve", "none"], "there is no run none in this store"],
        [["replay", "none"], "there is no run none in this store"],
        [["resume", "none", ...agent], "there is no run none in this store"],
        [["export", "none"], "there is no run none in this store"]
      ] as const) {
        const { code, error, out } = yield* kernai(["runs", ...args, ...store])
        assert.deepStrictEqual([code, out], [2, ""])
        assert.include(error, reason)
      }
    })
  )

  it.live(
    "is shown with control characters escaped (S-19)",
    () =>
      Effect.gen(function* () {
        const folder = yield* place
        const hostile = '<block type="command" name="send">{"to": "Oslo\u202e\u009b2J\\u001b[2J"}</block>'
        writeFileSync(join(folder, "script.json"), JSON.stringify([hostile]))
        const id = idOf(
          yield* kernai(["run", "--create", "Write \u202e to Oslo", ...sqliteOf(folder), ...agentOf(folder)])
        )
        for (const args of [
          ["show", id],
          ["show", id, "--json"],
          ["export", id],
          ["list", "--json"]
        ]) {
          const { code, out } = yield* kernai(["runs", ...args, ...sqliteOf(folder)])
          assert.strictEqual(code, 0)
          assert.notMatch(out.replaceAll("\n", ""), /[\p{Cc}\p{Cf}]/u)
        }
      }),
    60_000
  )
})
