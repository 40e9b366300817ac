/**
 * Searches 50,000 files with ripgrep, with the workspace over ripgrep, and with the workspace that reads them. Prints the
 * times in milliseconds as JSON: the shortest of each, which the rest of the machine disturbs least.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Workspace from "../src/workspace/Workspace.ts"

const [, , root = ""] = process.argv
const line = "const value = compute(argument, another) // a line like those of programs\n"
for (let folder = 0; folder < 500; folder++) {
  const path = join(root, `folder-${folder}`)
  mkdirSync(path)
  for (let file = 0; file < 100; file++) {
    const rare = (folder * 100 + file) % 1_000 === 0 ? "needle in here\n" : ""
    writeFileSync(join(path, `file-${file}.ts`), line.repeat(20) + rare)
  }
}

/** Times searches in turns. */
const timed = async (searches: ReadonlyArray<() => Promise<number> | number>): Promise<ReadonlyArray<number>> => {
  const times: ReadonlyArray<Array<number>> = searches.map(() => [])
  for (let round = 0; round < 9; round++) {
    for (const [index, search] of searches.entries()) {
      const begun = performance.now()
      const found = await search()
      if (found !== 50) throw new Error(`found ${found}, not 50`)
      times[index]?.push(performance.now() - begun)
    }
  }
  return times.map((each) => Math.min(...each))
}

const args = ["--no-config", "--no-ignore", "--hidden", "-n", "needle", "./"]
const ripgrep = () => spawnSync("rg", args, { cwd: root, encoding: "utf8" }).stdout.split("\n").length - 1

const program = Effect.gen(function* () {
  const workspace = yield* Workspace.Workspace
  const grep = Effect.map(workspace.grep("needle"), ({ items }) => items.length)
  const search = () => Effect.runPromise(grep)
  const path = process.env["PATH"]
  const without = async () => {
    process.env["PATH"] = "/nowhere"
    const found = await search()
    process.env["PATH"] = path
    return found
  }
  const [own, over, reading] = yield* Effect.promise(() => timed([ripgrep, search, without]))
  console.log(JSON.stringify({ own, over, reading }))
})

await Effect.runPromise(Effect.provide(program, Layer.provide(Workspace.layerLocal({ root }), NodeServices.layer)))
