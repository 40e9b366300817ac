/**
 * A program in QuickJS. Its thread ends with it, so nothing in here is released.
 */

import * as NodeModule from "node:module"
import type { QuickJSContext, QuickJSHandle, QuickJSRuntime } from "quickjs-emscripten-core"
import type { Failed, Program, Reply, Settled } from "./quickJsMessages.ts"
import { prelude } from "./prelude.ts"

/** The processor time of this thread, or the time of the process where a runtime does not tell it. */
const cpuMillis = (): number => {
  if (typeof process.threadCpuUsage !== "function") return performance.now()
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1_000
}

/** Present in the runtime of this name. */
declare const Bun:
  | undefined
  | { readonly Transpiler: new (options: object) => { readonly transformSync: (source: string) => string } }

/** Removes the types of a program where its runtime has no function for it, such as Bun. Moves its lines. */
const transpiled = (source: string): string | undefined => {
  if (typeof Bun === "undefined") return undefined
  try {
    const options = { loader: "ts", deadCodeElimination: false, treeShaking: false }
    return `"use strict"; ${new Bun.Transpiler(options).transformSync(source)}`
  } catch {
    return undefined
  }
}

/** Removes the types of a program. Other text stays, so that the interpreter names its faults. */
const withoutTypes = (source: string): string => {
  const { stripTypeScriptTypes } = NodeModule
  try {
    return typeof stripTypeScriptTypes === "function" ? stripTypeScriptTypes(source) : source
  } catch {
    return source
  }
}

/** The lines of a program are counted from the second one of this function. */
const functionOf = (source: string): string => `(async () => { "use strict";\n${source}\n})`

const fileName = "program.js"

/** Returns the line of the program in a stack of the interpreter. */
const lineIn = (stack: string): number | undefined => {
  const line = /program\.js:(\d+)/.exec(stack)?.[1]
  return line === undefined ? undefined : Number(line) - 1
}

/**
 * Returns the line of an error. The interpreter knows the last call or statement before it; a field that cannot be read
 * is looked for from there.
 */
const lineOf = (message: string, stack: string, lines: ReadonlyArray<string>): number | undefined => {
  const line = lineIn(stack)
  const field = /^cannot (?:read|set) property '(.+)' of /.exec(message)?.[1]
  if (line === undefined || field === undefined) return line === 0 ? undefined : line
  const isFrom = (index: number) => index >= line - 1
  const reads = lines.findIndex((text, index) => isFrom(index) && readsField(text, field))
  const index = reads === -1 ? lines.findIndex((text, index) => isFrom(index) && text.includes(field)) : reads
  return index === -1 ? undefined : index + 1
}

/** Returns whether a line has `.field` or `["field"]`. */
const readsField = (text: string, field: string): boolean =>
  text.split(field).some((before, index, all) => {
    const after = all[index + 1]
    return after !== undefined && (/\[\s*["'`]$/.test(before) || (/\.\s*$/.test(before) && !/^[\w$]/.test(after)))
  })

/** A program in a runtime of its own. Mutable: it advances with its steps. */
export class Execution {
  readonly #program: Program
  readonly #runtime: QuickJSRuntime
  readonly #context: QuickJSContext
  #deadline = 0
  #limit: "cpu" | "calls" | "output" | undefined
  #calls: Array<{ readonly name: string; readonly input: string; readonly line?: number }> = []
  #made = 0
  #settled = 0
  #length = 0
  #log = ""
  #end: Reply | undefined
  #settle: QuickJSHandle | undefined

  constructor(program: Program, runtime: QuickJSRuntime) {
    runtime.setMaxStackSize(program.stackBytes)
    runtime.setInterruptHandler(() => {
      if (cpuMillis() > this.#deadline) this.#limit ??= "cpu"
      return this.#limit !== undefined
    })
    this.#program = program
    this.#runtime = runtime
    this.#context = runtime.newContext()
  }

  /** Settles the calls of the last step, and runs the program until it waits. */
  next(results: ReadonlyArray<Settled>): Reply {
    this.#deadline = cpuMillis() + this.#program.cpuMillis
    this.#calls = []
    this.#length = 0
    try {
      if (this.#settle === undefined) this.#start()
      for (const result of results) this.#pass(result)
      this.#drain()
    } catch (error) {
      this.#end ??= this.#failure("unavailable", String(error))
    }
    if (this.#limit !== undefined) return this.#failure(this.#limit, limits[this.#limit])
    // Calls that the program does not wait for are made, too.
    if (this.#calls.length > 0) return { type: "calls", calls: this.#calls }
    return this.#end ?? this.#failure("stuck", "The program waits for a promise that nothing settles")
  }

  #start(): void {
    const { functions, now, seed, source } = this.#program
    const context = this.#context
    const host = [
      context.newNumber(now),
      context.newNumber(seed),
      this.#value(context.evalCode(`(${JSON.stringify(functions)})`)),
      this.#function("send", (name, json, stack) => this.#send(name, json, stack)),
      this.#function("print", (line) => this.#print(line)),
      this.#function("done", (isValue, json) => this.#done(isValue, json))
    ]
    const start = this.#value(context.evalCode(prelude, "prelude.js"))
    const { run, settle } = this.#members(this.#value(context.callFunction(start, context.undefined, host)))
    this.#settle = settle
    const main = this.#compile(functionOf(source))
    if (main.error !== undefined) return this.#fail("syntax", context.dump(main.error))
    const started = context.callFunction(run, context.undefined, [main.value])
    if (started.error !== undefined) this.#fail("thrown", context.dump(started.error))
  }

  #compile(source: string): ReturnType<QuickJSContext["evalCode"]> {
    const plain = this.#context.evalCode(withoutTypes(source), fileName)
    const other = plain.error === undefined ? undefined : transpiled(source)
    return other === undefined ? plain : this.#context.evalCode(other, fileName)
  }

  #pass(result: Settled): void {
    const context = this.#context
    const settle = this.#settle
    if (settle === undefined) return
    const id = context.newNumber(this.#settled++)
    const given =
      result.type === "value"
        ? [id, context.true, context.newString(result.json)]
        : [id, context.false, context.newString(result.message), context.newString(result.name)]
    const passed = context.callFunction(settle, context.undefined, given)
    if (passed.error !== undefined) this.#fail("thrown", context.dump(passed.error))
  }

  #drain(): void {
    while (this.#limit === undefined && this.#runtime.hasPendingJob()) {
      const done = this.#runtime.executePendingJobs()
      if (done.error !== undefined) this.#fail("thrown", this.#context.dump(done.error))
    }
  }

  #send(name: string, input: string, stack: string): void {
    if (++this.#made > this.#program.calls) this.#limit ??= "calls"
    this.#length += input.length
    if (this.#length > this.#program.outputLength) this.#limit ??= "output"
    if (this.#limit !== undefined) return
    const line = lineIn(stack)
    this.#calls.push({ name, input, ...(line === undefined ? {} : { line }) })
  }

  #print(line: string): void {
    const { logLength } = this.#program
    if (this.#log.length >= logLength) return
    const log = this.#log + line + "\n"
    this.#log = log.length > logLength ? `${log.slice(0, logLength)}…` : log
  }

  #done(isValue: string, json: string): void {
    if (isValue !== "true") return this.#fail("thrown", JSON.parse(json))
    if (json.length > this.#program.outputLength) this.#limit ??= "output"
    else this.#end ??= { type: "returned", value: json, log: this.#log }
  }

  /** Ends the program with an error of the interpreter, as it dumps it. */
  #fail(reason: Failed["reason"], error: unknown): void {
    const [name = "", message = "", stack = ""] = ["name", "message", "stack"].map((key) => textIn(error, key))
    const text = [name, message].filter((part) => part !== "").join(": ")
    const isMemory = message === "out of memory"
    const isStack = message === "Maximum call stack size exceeded"
    const found = isMemory ? "memory" : isStack ? "stack" : reason
    const line = lineOf(message, stack, this.#program.source.split("\n"))
    this.#end ??= this.#failure(found, text === "" ? String(error) : text, line)
  }

  #failure(reason: Failed["reason"], detail: string, line?: number): Failed {
    const text = line === undefined ? undefined : this.#program.source.split("\n")[line - 1]
    return {
      type: "failed",
      reason,
      detail: detail.slice(0, longestText),
      ...(line === undefined || text === undefined ? {} : { line, text: text.slice(0, longestLine) }),
      ...(this.#log === "" ? {} : { log: this.#log })
    }
  }

  /** Returns a function of the host that receives its arguments as texts. Too long ones end the program. */
  #function(name: string, call: (...given: [string, string, string]) => void): QuickJSHandle {
    return this.#context.newFunction(name, (...given) => {
      const [first = "", second = "", third = ""] = given.map((handle) => this.#textOf(handle))
      call(first, second, third)
    })
  }

  #textOf(handle: QuickJSHandle): string {
    const length = this.#context.getProp(handle, "length")
    if (this.#context.getNumber(length) > this.#program.outputLength) {
      this.#limit ??= "output"
      return ""
    }
    return this.#context.getString(handle)
  }

  #members(handle: QuickJSHandle): { readonly run: QuickJSHandle; readonly settle: QuickJSHandle } {
    return { run: this.#context.getProp(handle, "run"), settle: this.#context.getProp(handle, "settle") }
  }

  #value(result: ReturnType<QuickJSContext["evalCode"]>): QuickJSHandle {
    return this.#context.unwrapResult(result)
  }
}

const limits = {
  cpu: "The program computed for too long between its calls",
  calls: "The program made too many calls",
  output: "The program returned or passed too much text"
}

const textIn = (error: unknown, key: string): string => {
  const value: unknown = typeof error === "object" && error !== null ? Reflect.get(error, key) : undefined
  return typeof value === "string" ? value : ""
}

const longestText = 4_000
const longestLine = 500
