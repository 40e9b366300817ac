/**
 * The promises about stores that live long: conversations, formats, copies.
 */
import { attempt, existing, type Line, node } from "./support.ts"

/** The bytes of a conversation of 400 turns in one store, in a process of its own. */
const bytesIn = (kind: "memory" | "files" | "sqlite" | "postgres"): Promise<Line> =>
  attempt(`400 turns of 200 tokens take less than 6 MB: ${kind}`, () => {
    const script = ["--expose-gc", "--conditions=kernai-source", "test/support/conversationBytes.ts", kind]
    const { stderr, stdout } = node(script, { timeout: 600_000 })
    const found = /^\{.*\}$/m.exec(stdout)?.[0]
    if (found === undefined) throw new Error(stderr.slice(-1_000))
    const { bytes, messages, millis }: Measured = JSON.parse(found)
    return {
      pass: bytes < 6_000_000 && messages === 799,
      figure: `${(bytes / 1e6).toFixed(2)} MB; the last run opens in ${millis.toFixed(0)} ms`
    }
  })

/** What the script prints. */
interface Measured {
  readonly bytes: number
  readonly messages: number
  readonly millis: number
}

export const longlivedStores = async (): Promise<ReadonlyArray<Line>> => [
  existing("a conversation is stored once, and each of its runs opens, exports, forks and replays by itself", [
    "test/chat/storedOnce.test.ts"
  ]),
  await bytesIn("memory"),
  await bytesIn("files"),
  await bytesIn("sqlite"),
  await bytesIn("postgres"),
  existing("stores of the formats before are read and continued, on four stores", [
    "test/durable/journals.test.ts",
    "test/durable/format3.test.ts"
  ]),
  existing("a damaged journal line is named by its own revision", ["test/file/damagedRuns.test.ts"]),
  existing("15 of 15 copies of a SQLite file in use have every stored run", ["test/sql/copies.test.ts"]),
  existing("runs are backed up and restored from the command line", ["test/cli/runs/backupRuns.test.ts"]),
  existing("a process of the command line ends after SIGTERM", ["test/cli/lastResort.test.ts"])
]
