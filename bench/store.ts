/**
 * 1,000 durable turns on SQLite against an effect/cluster workflow, and against a bare loop of inserts.
 *
 * A turn is one reply and one call, with 1 KB of content. Wall time, because waiting for the disk is
 * part of it. Both sides of a row have the same driver and the same `synchronous`.
 */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import { Effect, Exit, Layer, Option, Result, Schema, Scope, Stream } from "effect"
import { ClusterWorkflowEngine, SingleRunner } from "effect/cluster"
import { Activity, Workflow } from "effect/workflow"
import * as fs from "node:fs"
import { DatabaseSync } from "node:sqlite"
import * as os from "node:os"
import * as path from "node:path"
import * as Agent from "../dist/Agent.js"
import * as Content from "../dist/Content.js"
import * as Kernel from "../dist/Kernel.js"
import type * as Message from "../dist/Message.js"
import type * as Provider from "../dist/Provider.js"
import * as RunCodec from "../dist/RunCodec.js"
import * as RunStore from "../dist/RunStore.js"
import * as Skill from "../dist/Skill.js"
import * as SkillRegistry from "../dist/SkillRegistry.js"
import * as StreamPart from "../dist/StreamPart.js"
import * as SqliteClient from "../dist/sql/SqliteClient.js"
import * as SqlRunStore from "../dist/sql/SqlRunStore.js"
import * as Journal from "../src/testing/internal/sampleJournal.ts"
import { end, kernelOn } from "./kernai.ts"
import { compare, comparisonOf, ratioRow, type Row, row } from "./support.ts"

type Synchronous = NonNullable<SqliteClient.Options["synchronous"]>

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kernai-bench-"))
let files = 0
const newFile = () => path.join(folder, `${files++}.db`)

/** Returns the milliseconds of a body, without building and closing its layer. */
const timed = async <A, E, R, E2>(body: Effect.Effect<A, E, R>, layer: Layer.Layer<R, E2>): Promise<number> => {
  const scope = Scope.makeUnsafe()
  const context = await Effect.runPromise(Layer.buildWithScope(layer, scope))
  const from = performance.now()
  await Effect.runPromise(Effect.provideContext(body, context))
  const took = performance.now() - from
  await Effect.runPromise(Scope.close(scope, Exit.void))
  return took
}

/** Returns the bytes this process has written to files so far, or undefined where the system does not count them. */
const bytesWritten = (): number | undefined => {
  if (process.platform !== "linux") return undefined
  return Number(/^wchar: (\d+)$/m.exec(fs.readFileSync("/proc/self/io", "utf8"))?.[1])
}

// ---------------------------------------------------------------- a run of n turns

const replyText = "word ".repeat(60)
const resultText = "fact ".repeat(140)

const search = Skill.make("search", {
  description: "Looks something up",
  input: Schema.Struct({ query: Schema.String }),
  effects: "read",
  execute: () => Effect.succeed(resultText)
})
const act = [
  StreamPart.text(`${replyText}<block type="command" name="search">{"query":"x"}</block>`),
  StreamPart.finish()
]

const nothing = () => {}

/** Calls `search` in every turn but the last. `beforeReply` runs before each reply. */
const scripted = (turns: number, beforeReply: () => void): Provider.ProviderShape => {
  let call = 0
  const stream = () => {
    beforeReply()
    return Stream.fromArray(++call < turns ? act : end)
  }
  return { name: "mock", stream }
}

/** Runs so many turns on a new database. */
const kernai = async (turns: number, options: { readonly synchronous: Synchronous }, beforeReply = nothing) => {
  const filename = newFile()
  const agent = Agent.make({
    instructions: "You test.",
    model: { id: "m", capabilities: ["text"] },
    skills: [search],
    maxSteps: turns
  })
  const run = Kernel.run(agent, "go", { provider: scripted(turns, beforeReply), runId: "run" })
  const store = SqlRunStore.layerSqlite({ filename, ...options })
  const ms = await timed(run, kernelOn(store, SkillRegistry.layer(search)))
  return { ms, filename }
}

// ---------------------------------------------------------------- a durable workflow

const Turns = Workflow.make("Turns", {
  payload: { id: Schema.String, turns: Schema.Int },
  success: Schema.String,
  idempotencyKey: ({ id }) => id
})

const activity = (name: string, text: string) =>
  Activity.make({ name, success: Schema.String, execute: Effect.succeed(text) })

/** Returns the milliseconds of a workflow with two activities in each turn: the model call and the skill. */
const workflow = (turns: number, synchronous: Synchronous): Promise<number> => {
  const engine = ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(SingleRunner.layer()),
    Layer.provide(SqliteClient.layer({ filename: newFile(), synchronous })),
    Layer.provide(NodeCrypto.layerDigest)
  )
  const body = Turns.toLayer(
    Effect.fnUntraced(function* ({ turns }) {
      for (let turn = 0; turn < turns; turn++) {
        yield* activity(`model-${turn}`, replyText)
        yield* activity(`skill-${turn}`, resultText)
      }
      return "done"
    })
  )
  return timed(Turns.execute({ id: "one", turns }), Layer.provideMerge(body, engine))
}

// ---------------------------------------------------------------- a bare loop

const journalOf = (filename: string): ReadonlyArray<string> => {
  const db = new DatabaseSync(filename)
  const rows = db.prepare("SELECT body FROM kernai_journal ORDER BY entry").all()
  db.close()
  return rows.map((row) => String(row["body"]))
}

/** Inserts the rows of a journal, one transaction each. `turn` inserts up to the next model call. */
const bareLoop = (records: ReadonlyArray<string>, synchronous: Synchronous) => {
  const db = new DatabaseSync(newFile())
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`)
  db.exec("CREATE TABLE journal (run INTEGER, revision INTEGER, body TEXT, PRIMARY KEY (run, revision))")
  const insert = db.prepare("INSERT INTO journal VALUES (1, ?, ?)")
  let at = 0
  let ms = 0
  const turn = () => {
    const from = performance.now()
    for (let isOver = false; at < records.length && !isOver; at++) {
      const record = records[at] ?? ""
      insert.run(at + 1, record)
      isOver = record.includes('"type":"model_started"')
    }
    ms += performance.now() - from
  }
  return { turn, ms: () => ms, close: () => db.close() }
}

// ---------------------------------------------------------------- resuming

/** Writes a run of so many turns and, in a table beside it, its messages and a snapshot of the rest of its state. */
const long = async (turns: number) => {
  const filename = newFile()
  const journal = Journal.begin("long")
  const store = SqlRunStore.layerSqlite({ filename, synchronous: "normal" })
  const fill = RunStore.RunStore.use(
    Effect.fnUntraced(function* (store) {
      const first = journal.last()
      yield* store.append([first.record], first.state)
      for (let turn = 0; turn < turns; turn++) {
        const records = Journal.turn(journal, { text: replyText, output: [Content.text(resultText)] })
        for (const { record, state } of records) yield* store.append([record], state)
      }
    })
  )
  await timed(fill, store)
  const { state } = journal.last()
  const db = new DatabaseSync(filename)
  db.exec("CREATE TABLE bare (n INTEGER PRIMARY KEY, body TEXT)")
  db.exec("BEGIN")
  const insert = db.prepare("INSERT INTO bare (body) VALUES (?)")
  const wire = (message: Message.Message) => ({ role: message.role, content: message.content.map(Content.encode) })
  for (let at = 0; at < state.prompt.length; at += 128) {
    insert.run(JSON.stringify(state.prompt.slice(at, at + 128).map(wire)))
  }
  const rest = state.turns.map((turn) => {
    const { message: _, ...facts } = turn
    return { ...facts, completed: turn.completed.map((result) => ({ ...result, output: [] })) }
  })
  const snapshot = RunCodec.encodeState({ ...state, turns: rest, prompt: [] })
  insert.run(Result.getOrThrow(snapshot))
  db.exec("COMMIT")
  db.close()
  return { filename, store, turns }
}

const readMessages = Schema.decodeUnknownResult(
  Schema.Array(Schema.Struct({ role: Schema.String, content: Schema.Array(Content.Content) }))
)

/** Reads and decodes that table, and does nothing else. Returns the milliseconds. */
const readBare = ({ filename }: { readonly filename: string }): number => {
  const from = performance.now()
  const db = new DatabaseSync(filename)
  const texts = db
    .prepare("SELECT body FROM bare ORDER BY n")
    .all()
    .map(({ body }) => String(body))
  const messages = texts.slice(0, -1).map((text) => Result.getOrThrow(readMessages(JSON.parse(text))))
  const snapshot = Result.getOrThrow(RunCodec.make().decodeState(texts.slice(-1)))
  db.close()
  if (messages.flat().length < snapshot.turns.length) throw new Error("messages are missing")
  return performance.now() - from
}

const load = ({ store, turns }: Awaited<ReturnType<typeof long>>): Promise<number> =>
  timed(
    RunStore.RunStore.use((store) =>
      Effect.map(store.load("long"), (state) => {
        if (Option.getOrThrow(state).turns.length !== turns) throw new Error("turns are missing")
      })
    ),
    store
  )

// ---------------------------------------------------------------- measuring

const turns = 1_000

const againstWorkflow = async (): Promise<Row> => {
  const ours = async () => (await kernai(turns, { synchronous: "normal" })).ms
  const times = await compare(ours, () => workflow(turns, "normal"), { warm: 1, counted: 5 })
  return ratioRow("store.workflow", "1,000 durable turns: wall time over an effect/cluster workflow", times, "ms", 0.2)
}

const megabytes = async (body: () => Promise<unknown>): Promise<number> => {
  const before = bytesWritten() ?? NaN
  await body()
  return ((bytesWritten() ?? NaN) - before) / 1e6
}

/** What reaches the file system, write-ahead log and checkpoints included. */
const written = async (): Promise<ReadonlyArray<Row>> => {
  if (bytesWritten() === undefined) return []
  const whole = await megabytes(() => kernai(turns, { synchronous: "normal" }))
  const half = await megabytes(() => kernai(turns / 2, { synchronous: "normal" }))
  const theirs = await megabytes(() => workflow(turns, "normal"))
  return [
    row("store.written", "1,000 durable turns: MB written, beside an effect/cluster workflow", whole, 18, {
      ours: whole,
      peer: theirs,
      unit: "MB"
    }),
    row("store.growth", "bytes written for 1,000 turns over those for 500", whole / half, 2.2)
  ]
}

/**
 * What a run costs beside the disk: the loop inserts the rows of its journal and does nothing else. No bar: the fewer
 * appends a run makes, the less this loop has to do.
 *
 * Both sides advance turn by turn beside each other, because the speed of a disk changes from one second to the next.
 */
const againstLoop = async (synchronous: Synchronous): Promise<Row> => {
  const options = { synchronous }
  const records = journalOf((await kernai(turns, options)).filename)
  const rounds: Array<{ readonly ours: number; readonly peer: number }> = []
  for (let round = 0; round < 9; round++) {
    const loop = bareLoop(records, synchronous)
    const { ms } = await kernai(turns, options, loop.turn)
    const ours = ms - loop.ms()
    // The last turn's records are still to be inserted.
    loop.turn()
    loop.close()
    if (round > 1) rounds.push({ ours, peer: loop.ms() })
  }
  const name = `1,000 turns, a transaction per append, synchronous ${synchronous}: wall time over a bare loop`
  return ratioRow(`store.loop.${synchronous}`, name, comparisonOf(rounds), "ms", null)
}

const resuming = async (): Promise<Row> => {
  const run = await long(10_000)
  const times = await compare(
    () => load(run),
    async () => readBare(run),
    { warm: 1, counted: 5 }
  )
  const name = "resuming after 10,000 turns: wall time over reading and decoding its messages and a snapshot"
  return ratioRow("store.resume", name, times, "ms", 1.5)
}

export default async (): Promise<ReadonlyArray<Row>> => {
  try {
    return [
      await againstWorkflow(),
      ...(await written()),
      await againstLoop("full"),
      await againstLoop("normal"),
      await resuming()
    ]
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}
