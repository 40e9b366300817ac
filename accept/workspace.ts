/**
 * The promises of workspaces: every layer passes the suite, nothing leaves them, nothing is left behind, a repair that is
 * killed anywhere ends the same, searches are fast, snapshots small, and knowledge is found.
 */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { attempt, existing, inFolder, type Line, node, vitest } from "./support.ts"
import { knowledge } from "./workspaceKnowledge.ts"

const test = (name: string) => `test/workspace/${name}.test.ts`

/** Programs of the machine that promises need; a line fails where one is missing. */
const programs = (): Line => {
  const missing = ["bwrap", "rg", "git"].filter((name) => spawnSync(name, ["--version"]).status !== 0)
  return {
    line: "bubblewrap, ripgrep and git are there",
    pass: missing.length === 0,
    figure: missing.length === 0 ? "all" : `missing, so not proved here: ${missing.join(", ")}`
  }
}

const total = (text: string, word: RegExp): number =>
  [...text.matchAll(word)].reduce((sum, match) => sum + Number(match[1]), 0)

const escapes = (): ReadonlyArray<Line> => {
  const ran = vitest([test("escapes")])
  const tried = total(ran.stdout, /escapes: (\d+)/g)
  const ended = [...ran.stdout.matchAll(/interruptions of a (\w+) workspace: (\d+), processes left: (\d+)/g)]
  return [
    {
      line: "no escape of a list of at least 200 gets through: paths, links, files, processes, network, devices, bombs",
      pass: ran.status === 0 && tried >= 200,
      figure: `${tried} tried, ${ran.status === 0 ? 0 : "some"} through`
    },
    {
      line: "no process is left after 100 interruptions, nor when the host is killed",
      pass:
        ran.status === 0 && ended.length === 2 && ended.every(([, , count, left]) => count === "100" && left === "0"),
      figure: ended.map(([, name, count, left]) => `${name}: ${count} interruptions, ${left} left`).join("; ")
    }
  ]
}

const kills = (): Line => {
  const ran = vitest([test("repair")])
  const places = [...ran.stdout.matchAll(/kills ([\w ]+): (\d+)/g)]
  return {
    line: "a repair killed at every append ends with the same files, in memory, in a folder and in a sandbox",
    pass: ran.status === 0 && places.length === 3,
    figure: places.map(([, place, count]) => `${count} kills ${place}`).join(", ")
  }
}

const search = (): Promise<Line> =>
  attempt("grep over 50,000 files takes at most 1.5 times ripgrep's own time, and 5 times where it is not there", () =>
    inFolder((folder) => {
      const ran = node([
        "--conditions=kernai-source",
        fileURLToPath(new URL("workspaceSearch.ts", import.meta.url)),
        folder
      ])
      const { over, own, reading }: { readonly own: number; readonly over: number; readonly reading: number } =
        JSON.parse(ran.stdout)
      const [first, second] = [over / own, reading / own]
      return {
        pass: first <= 1.5 && second <= 5,
        figure: `ripgrep ${own.toFixed(0)} ms; with it ${over.toFixed(0)} ms (${first.toFixed(2)}), without ${reading.toFixed(0)} ms (${second.toFixed(2)})`
      }
    })
  )

/** Precision and recall of each corpus, as its test logs them; the test has the bounds. */
const guards = (): ReadonlyArray<Line> => {
  const ran = vitest(["test/guard/corpora.test.ts"])
  const corpora = ["personal data", "secrets", "injections"].flatMap((kind) => [
    kind,
    `${kind}, blind`,
    `${kind}, blind and unseen`
  ])
  return corpora.map((corpus) => {
    const figure = new RegExp(`guards ${corpus}: (.*)`).exec(ran.stdout)?.[1]
    return {
      line: `guards find what stands in the corpus of ${corpus}`,
      pass: ran.status === 0 && figure !== undefined,
      figure: figure ?? "not measured"
    }
  })
}

export const workspace = async (): Promise<ReadonlyArray<Line>> => [
  programs(),
  existing("every layer passes the suite of kernai/testing", [
    test("layerMemory"),
    test("layerLocal"),
    test("layerSandboxed")
  ]),
  ...escapes(),
  kills(),
  existing("undo, fork and a repeated write find the files of their revision, and keep only what changed", [
    test("WorkspaceHistory")
  ]),
  existing("commands are read by the grammar of the shell before a prefix allows them", [test("WorkspacePolicy")]),
  existing("a chat works in a folder, with plan and work mode, prefixes and undo", [
    "test/cli/chat/workspaceChat.test.ts"
  ]),
  existing("an editor drives an agent: conversation, load, permission, cancel, files, terminals, by the SDK's client", [
    "test/acp/AcpServe.test.ts",
    "test/cli/acp.test.ts"
  ]),
  await search(),
  ...(await knowledge()),
  existing("guards mask and unmask, remove, mark, ask and stop", ["test/guard/Guard.test.ts"]),
  ...guards()
]
