import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"

const bin = fileURLToPath(new URL("../../bin/kernai.mjs", import.meta.url))

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly error: string
}

/** A real process: slow, so there are only a few. `onStart` is told how to send it a signal. */
const call = (
  args: ReadonlyArray<string>,
  env: { readonly [name: string]: string } = {},
  onStart: (kill: (signal: NodeJS.Signals) => void) => void = () => {}
): Promise<Ended> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [bin, ...args], {
      env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
      stdio: ["ignore", "pipe", "pipe"]
    })
    const ended = { out: "", error: "" }
    child.stdout.on("data", (data) => (ended.out += data))
    onStart((signal) => child.kill(signal))
    child.stderr.on("data", (data) => (ended.error += data))
    child.on("close", (code) => resolve({ code, ...ended }))
  })

describe("kernai", () => {
  it("plays the recorded conversation and ends with its answer, without a key and without colours in a pipe", async () => {
    const { code, error, out } = await call(["run"])
    assert.strictEqual(error, "")
    assert.strictEqual(code, 0)
    assert.notInclude(out, "\u001b")
    assert.match(out, /^ {2}skill {5}user_database {2}.+ ms/m)
    assert.isTrue(out.endsWith("Therefore, 50% of active users are on the premium plan.\n"))
  })

  it("names the missing variable and the keyless command on one line", async () => {
    const { code, error, out } = await call(["run", "--model", "anthropic/claude-sonnet-4-20250514", "Hello?"])
    assert.strictEqual(code, 2)
    assert.strictEqual(out, "")
    assert.strictEqual(error.trimEnd().split("\n").length, 1)
    assert.include(error, "ANTHROPIC_API_KEY is not set")
    assert.include(error, "'kernai run'")
  })

  it("tells a mistake on the command line in two lines, with the code for usage", async () => {
    const { code, error, out } = await call(["run", "--colour"])
    assert.strictEqual(code, 2)
    assert.strictEqual(out, "")
    assert.match(error, /^kernai: .*--colour.*\n'kernai run --help' tells how it is called\n$/)
  })

  it("completes commands and flags in the shell", async () => {
    const { code, out } = await call(["--completions", "bash"])
    assert.strictEqual(code, 0)
    for (const word of ["run", "doctor", "--model", "--replay"]) assert.include(out, word)
  })

  it("tells which keys are there and never what they are", async () => {
    const { code, out } = await call(["doctor", "--json"], { OPENAI_API_KEY: "sk-SECRET-0123456789" })
    assert.strictEqual(code, 0)
    assert.notInclude(out, "SECRET")
    const findings: ReadonlyArray<{ readonly name: string; readonly state: string }> = JSON.parse(out)
    const state = (name: string) => findings.find((finding) => finding.name === name)?.state
    assert.deepStrictEqual([state("openai"), state("anthropic")], ["ok", "missing"])
  })

  it("ends a run at Ctrl-C, with its connection, and says so", async () => {
    const asked = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    const server = createServer((_request, response) => {
      response.on("close", closed.resolve)
      asked.resolve()
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    const env = { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}` }
    const { code, error } = await call(["run", "--model", "anthropic/claude", "Hello?"], env, (kill) => {
      void asked.promise.then(() => kill("SIGINT"))
    })
    assert.strictEqual(code, 130)
    assert.strictEqual(error, "kernai: interrupted\n")
    await closed.promise
    server.close()
  })
})
