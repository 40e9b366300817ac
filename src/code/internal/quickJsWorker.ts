/**
 * A thread that runs one program. It imports nothing else of kernai, so that it starts fast.
 *
 * A message has the results of one or more steps; the reply is where the program then waits.
 */

import { parentPort, workerData } from "node:worker_threads"
import type { Program, Reply, Settled } from "./quickJsMessages.ts"

/** Times of a program are in UTC, on every machine. */
const useUtc = (): void => {
  for (const part of ["FullYear", "Month", "Date", "Day", "Hours", "Minutes", "Seconds", "Milliseconds"]) {
    Object.defineProperty(Date.prototype, `get${part}`, { value: Reflect.get(Date.prototype, `getUTC${part}`) })
  }
  Object.defineProperty(Date.prototype, "getTimezoneOffset", { value: () => 0 })
}

/** Node warns that the removal of types is experimental. */
const keepQuiet = (): void => {
  process.emitWarning = () => {}
}

/** Present in every runtime. The types of Node leave memories out. */
declare const WebAssembly: {
  readonly Memory: new (pages: { readonly initial: number; readonly maximum: number }) => object
}

/**
 * The memory of a program, its interpreter included. The limit of the interpreter itself counts no blocks here, so that a
 * program could take 2 GB.
 */
const memoryOf = ({ memoryBytes }: Program) =>
  new WebAssembly.Memory({ initial: leastPages, maximum: Math.max(leastPages, Math.ceil(memoryBytes / 65_536)) })

/** Pages of 64 KiB that the interpreter has when it starts. */
const leastPages = 256

const open = async (program: Program) => {
  const [{ newQuickJSWASMModuleFromVariant, newVariant }, { default: imported }, { Execution }] = await Promise.all([
    import("quickjs-emscripten-core"),
    import("@jitl/quickjs-ng-wasmfile-release-sync"),
    import("./quickJsExecution.ts")
  ])
  // The types are those of its CommonJS module.
  const variant = "default" in imported ? imported.default : imported
  const module = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmMemory: memoryOf(program) }))
  return new Execution(program, module.newRuntime())
}

useUtc()
keepQuiet()
const opened = open(workerData)

// Listens before anything is loaded, since Deno keeps no message for later.
parentPort?.on("message", async (steps: ReadonlyArray<ReadonlyArray<Settled>>) => {
  const execution = await opened
  let reply: Reply | undefined
  for (const results of steps) reply = execution.next(results)
  parentPort?.postMessage(reply)
})
