/**
 * The site of the documentation: the samples that run in its reader's browser, run here without anything of Node.js, and
 * the commands that install packages.
 */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { installs } from "../tools/docs/installs.mjs"
import { runnable, writeSamples } from "../tools/docs/samples.mjs"
import { pages } from "./support/samples.ts"

const root = join(import.meta.dirname, "..")
const assets = mkdtempSync(join(tmpdir(), "kernai-site-"))
afterAll(() => rmSync(assets, { recursive: true, force: true }))

/** Imports each file as the worker of a page does, and prints what it posts to the page. */
const worker = `globalThis.addEventListener = () => {}
globalThis.postMessage = (message) => process.stdout.write(JSON.stringify(message) + "\\n")
for (const file of process.argv.slice(1)) await import(file)`

describe("the site of the documentation", () => {
  it("runs samples that need the heart and a scripted model in a browser", { timeout: 120_000 }, async () => {
    const samples = runnable(pages.map((page) => join(root, page)))
    assert.isAtLeast(samples.size, 20)
    await writeSamples(samples, assets)
    const files = readdirSync(join(assets, "samples")).map((file) => join(assets, "samples", file))
    assert.strictEqual(files.length, samples.size)
    const ran = spawnSync(process.execPath, ["--input-type=module", "-e", worker, ...files], { encoding: "utf8" })
    assert.strictEqual(ran.status, 0, ran.stderr)
    const posted = ran.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    assert.strictEqual(posted.filter(({ ended }) => ended === true).length, files.length)
    assert.isAtLeast(posted.filter(({ line }) => typeof line === "string").length, files.length)
  })

  it("installs packages in the words of Node, Bun and Deno", () => {
    const lines = "npm install kernai effect@4.1.0\nnpm install --save-dev @effect/vitest@4.0.5"
    assert.deepStrictEqual(installs(lines), [
      { runtime: "Node", text: lines },
      { runtime: "Bun", text: "bun add kernai effect@4.1.0\nbun add --dev @effect/vitest@4.0.5" },
      { runtime: "Deno", text: "deno add npm:kernai npm:effect@4.1.0\ndeno add --dev npm:@effect/vitest@4.0.5" }
    ])
    assert.isUndefined(installs("npm ci && npm start"))
  })
})
