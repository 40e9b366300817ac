/**
 * What it costs to keep a run: SQLite against a bare loop of transactions and a durable workflow.
 *
 * A turn is one reply and one call, 1 KB of content together. The bare loop
 * inserts the very texts the run committed, in as many transactions. Wall time
 * of interleaved rounds, because waiting for the disk is what is measured.
 * Both sides of a row have the same driver and the same `synchronous`.
 * LangGraph.js is not among them: the driver of its SQLite checkpointer gets its
 * binary from an install script, and none are run here. `node bench/store.ts`.
 */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import { Effect, Exit, Layer, Option, Result, Schema, Scope, Stream } from "effect"
import { ClusterWorkflowEngine, SingleRunner } from "effect/cluster"
import { Activity, Workflow } from "effect/workflow"
import * as fs from "node:fs"
import { DatabaseSync } from "node:sqlite"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as Agent from "../src/Agent.ts"
import * as Content from "../src/Content.ts"
import * as Kernel from "../src/Kernel.ts"
import * as MediaStore from "../src/MediaStore.ts"
import type * as Message from "../src/Message.ts"
import * as ProtocolRegistry from "../src/ProtocolRegistry.ts"
import type * as Provider from "../src/Provider.ts"
import * as RunCodec from "../src/RunCodec.ts"
import * as RunStore from "../src/RunStore.ts"
import * as Skill from "../src/Skill.ts"
import * as SkillRegistry from "../src/SkillRegistry.ts"
import * as StreamPart from "../src/StreamPart.ts"
import * as SqliteClient from "../src/sql/SqliteClient.ts"
import * as SqlRunStore from "../src/sql/SqlRunStore.ts"
import * as Journal from "../src/testing/internal/sampleJournal.ts"
import { median, type Row, table } from "./support.ts"

type Synchronous = "full" | "normal"

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kernai-bench-"))
let files = 0
const newFile = () => path.join(folder, `${files++}.db`)

// ---------------------------------------------------------------- a run of n turns

const said = "word ".repeat(60)
const told = "fact ".repeat(140)
const payload = said.length + told.length

const search = Skill.make("search", {
  description: "Looks something up",
  input: Schema.Struct({ query: Schema.String }),
  effects: "read",
  execute: () => Effect.succeed(told)
})
const act = [StreamPart.text(`${said}<block type="command" name="search">{"query":"x"}</block>`), StreamPart.finish()]
const end = [StreamPart.text('<block type="final">done</block>'), StreamPart.finish()]

const nothing = () => {}

/** `meanwhile` happens before each reply. */
const scripted = (turns: number, meanwhile: () => void): Provider.ProviderShape => {
  let call = 0
  const stream = () => {
    meanwhile()
    return Stream.fromArray(++call < turns ? act : end)
  }
  return { name: "mock", stream }
}

const run = (turns: number, meanwhile = nothing) =>
  Kernel.run(
    Agent.make({
      instructions: "You test.",
      model: { id: "m", capabilities: ["text"] },
      skills: [search],
      maxSteps: turns
    }),
    "go",
    { provider: scripted(turns, meanwhile), runId: "run" }
  )

const kernel = <E>(store: Layer.Layer<RunStore.RunStore, E>) =>
  Kernel.layer.pipe(
    Layer.provide([SkillRegistry.layer(search), ProtocolRegistry.layer(), MediaStore.layerMemory, store])
  )

/** Milliseconds of a body, without opening and closing what it stands on. */
const timed = async <A, E, R, E2>(body: Effect.Effect<A, E, R>, layer: Layer.Layer<R, E2>): Promise<number> => {
  const scope = Scope.makeUnsafe()
  const context = await Effect.runPromise(Layer.buildWithScope(layer, scope))
  const from = performance.now()
  await Effect.runPromise(Effect.provideContext(body, context))
  const took = performance.now() - from
  await Effect.runPromise(Scope.close(scope, Exit.void))
  return took
}

const onSqlite = async (turns: number, synchronous: Synchronous, meanwhile = nothing) => {
  const filename = newFile()
  const ms = await timed(run(turns, meanwhile), kernel(SqlRunStore.layerSqlite({ filename, synchronous })))
  return { ms, filename }
}

const textsOf = (filename: string, tables: ReadonlyArray<string> = ["kernai_journal"]): ReadonlyArray<string> => {
  const db = new DatabaseSync(filename)
  const rows = tables.flatMap((table) => db.prepare(`SELECT body FROM ${table} ORDER BY entry`).all())
  db.close()
  return rows.map((row) => String(row["body"]))
}

const asks = '"type":"model_started"'

/** A loop that inserts texts, each in a transaction. `turn` inserts those up to the next question to a model. */
const bareLoop = (texts: ReadonlyArray<string>, synchronous: Synchronous) => {
  const db = new DatabaseSync(newFile())
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`)
  db.exec("CREATE TABLE journal (run INTEGER, revision INTEGER, body TEXT, PRIMARY KEY (run, revision))")
  const insert = db.prepare("INSERT INTO journal VALUES (1, ?, ?)")
  let [at, ms] = [0, 0]
  const turn = () => {
    const from = performance.now()
    for (let isOver = false; at < texts.length && !isOver; at++) {
      const text = texts[at] ?? ""
      insert.run(at + 1, text)
      isOver = text.includes(asks)
    }
    ms += performance.now() - from
  }
  return { turn, ms: () => ms, close: () => db.close() }
}

// ---------------------------------------------------------------- a durable workflow

const Turns = Workflow.make("Turns", {
  payload: { id: Schema.String, turns: Schema.Int },
  success: Schema.String,
  idempotencyKey: ({ id }) => id
})

const activity = (name: string, text: string) =>
  Activity.make({ name, success: Schema.String, execute: Effect.succeed(text) })

/** Milliseconds of a workflow that makes one call to a model and one to a skill in each turn. */
const workflow = (turns: number, synchronous: Synchronous): Promise<number> => {
  const engine = ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(SingleRunner.layer()),
    Layer.provide(SqliteClient.layer({ filename: newFile(), synchronous })),
    Layer.provide(NodeCrypto.layerDigest)
  )
  const body = Turns.toLayer(
    Effect.fnUntraced(function* ({ turns }) {
      for (let turn = 0; turn < turns; turn++) {
        yield* activity(`model-${turn}`, said)
        yield* activity(`skill-${turn}`, told)
      }
      return "done"
    })
  )
  return timed(Turns.execute({ id: "one", turns }), Layer.provideMerge(body, engine))
}

// ---------------------------------------------------------------- resuming

/** A file with a run of n turns, and beside it its messages, and a snapshot of all else that its state is. */
const long = async (turns: number) => {
  const filename = newFile()
  const journal = Journal.begin("long")
  const store = SqlRunStore.layerSqlite({ filename, synchronous: "normal" })
  const fill = RunStore.RunStore.use(
    Effect.fnUntraced(function* (store) {
      const first = journal.last()
      yield* store.append([first.record], first.state)
      for (let turn = 0; turn < turns; turn++) {
        for (const { record, state } of Journal.turn(journal, { text: said, output: [Content.text(told)] })) {
          yield* store.append([record], state)
        }
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

/** Reads and decodes the messages of a run and its last snapshot, and does nothing else. */
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
  if (messages.flat().length < snapshot.turns.length) throw new Error("there is nothing to read")
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

const bytes = (texts: ReadonlyArray<string>) => texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)

const atMost = (name: string, value: number, bound: number): Row => ({ name, value, bound, pass: value <= bound })

/**
 * Turns per second of the bare loop over ours: with the disk waited for at each transaction, and without.
 *
 * Both go on turn by turn beside each other: a disk is not as fast now as it is in a second. The first rounds, where
 * much of the code is not compiled yet, do not count.
 */
const speed = async (synchronous: Synchronous, least: number): Promise<Row> => {
  const turns = 1_000
  const { filename } = await onSqlite(turns, synchronous)
  const texts = textsOf(filename)
  const ours: Array<number> = []
  const theirs: Array<number> = []
  for (let round = 0; round < 9; round++) {
    const loop = bareLoop(texts, synchronous)
    const { ms } = await onSqlite(turns, synchronous, loop.turn)
    // What is left is the last turn's.
    const before = loop.ms()
    loop.turn()
    loop.close()
    if (round < 2) continue
    ours.push(ms - before)
    theirs.push(loop.ms())
  }
  const ratio = median(ours.map((ms, round) => ms / (theirs[round] ?? Number.NaN)))
  const perSecond = `${((turns / median(ours)) * 1000).toFixed(0)} turns/s, ${(1 / ratio).toFixed(2)} of the loop's`
  return atMost(`SQLite, synchronous ${synchronous}: bare loop's turns/s over a run's (${perSecond})`, ratio, 1 / least)
}

const langGraph: Row = {
  name: "LangGraph.js: not measured, better-sqlite3 under its SQLite checkpointer has no binary without install scripts",
  value: 0,
  bound: Infinity,
  pass: true
}

/** One run of a thousand turns, and workflows of a hundred: the longer they are, the longer each of their turns takes. */
const againstWorkflow = async (synchronous: Synchronous, bound: number): Promise<Row> => {
  const [mine, other] = [1_000, 100]
  const ours: Array<number> = []
  const theirs: Array<number> = []
  for (let round = 0; round < 4; round++) {
    theirs.push((await workflow(other, synchronous)) / other)
    ours.push((await onSqlite(mine, synchronous)).ms / mine)
  }
  const ratio = median(ours.slice(1).map((ms, round) => ms / (theirs[round + 1] ?? Number.NaN)))
  const times = `${median(ours.slice(1)).toFixed(2)} against ${median(theirs.slice(1)).toFixed(1)} ms`
  return atMost(
    `synchronous ${synchronous}: a turn's time over that of effect's cluster workflow on the same driver (${times})`,
    ratio,
    bound
  )
}

const size = async (): Promise<ReadonlyArray<Row>> => {
  const [half, whole] = [await onSqlite(500, "normal"), await onSqlite(1_000, "normal")]
  const weigh = ({ filename }: typeof half) => bytes(textsOf(filename, ["kernai_journal", "kernai_parts"]))
  const disk = fs.statSync(whole.filename).size / (1_000 * payload)
  return [
    atMost(
      `bytes written over the payload, 1,000 turns (the file: ${disk.toFixed(1)})`,
      weigh(whole) / (1_000 * payload),
      12
    ),
    atMost("bytes written for 1,000 turns over those for 500", weigh(whole) / weigh(half), 2.2)
  ]
}

const resuming = async (): Promise<Row> => {
  const run = await long(10_000)
  const ours: Array<number> = []
  const theirs: Array<number> = []
  for (let round = 0; round < 6; round++) {
    theirs.push(readBare(run))
    ours.push(await load(run))
  }
  const [mine, other] = [median(ours.slice(1)), median(theirs.slice(1))]
  return atMost(
    `resuming after 10,000 turns over reading and decoding their messages and a snapshot (${mine.toFixed(0)} ms)`,
    mine / other,
    1.5
  )
}

export const storeBench = async (): Promise<ReadonlyArray<Row>> => {
  try {
    return [
      await speed("full", 0),
      await speed("normal", 0),
      await againstWorkflow("normal", 0.1),
      // Both wait for the disk: 2 times a turn, and about 6 times.
      await againstWorkflow("full", Infinity),
      langGraph,
      ...(await size()),
      await resuming()
    ]
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) table("store", await storeBench())
