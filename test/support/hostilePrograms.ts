/** Programs that try to stay, to grow, to hide or to get out, made from small pieces at random. */
import { randomOf } from "./random.ts"

/** What a program does that must end it, or must do nothing. */
const deeds: ReadonlyArray<string> = [
  `for (;;);`,
  `while (true) { try { for (;;); } catch {} finally { continue } }`,
  `for (;;) await null`,
  `const loop = () => Promise.resolve().then(loop); await loop()`,
  `queueMicrotask(function again() { queueMicrotask(again) }); await new Promise(() => {})`,
  `await new Promise(() => {})`,
  `await { then() {} }`,
  `await { get then() { for (;;); } }`,
  `const all = []; for (;;) all.push(new ArrayBuffer(1e6))`,
  `let text = "x"; for (;;) text += text`,
  `const all = []; for (;;) all.push({ all })`,
  `return "x".repeat(2 ** 29)`,
  `return new Array(2 ** 31).fill(0)`,
  `return [..."x".repeat(1e6)].map((_, i) => "y".repeat(i))`,
  `const f = () => f(); f()`,
  `const f = async () => { await f() }; await f()`,
  `let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a`,
  `let a = {}; a.a = a; return a`,
  `JSON.parse("[".repeat(1e5))`,
  `return /(a+)+$/.test("a".repeat(40) + "b")`,
  `return 2n ** 10_000_000n`,
  `return [].constructor.constructor("return process")().exit(1)`,
  `return (async () => {}).constructor("return await import('node:fs')")()`,
  `return Function("return this")().process.mainModule.require("child_process").execSync("id")`,
  `return eval("require")("fs").readFileSync("/etc/passwd")`,
  `return await import("node:fs")`,
  `return await import("data:text/javascript,export default 1")`,
  `throw { get message() { for (;;); }, get stack() { throw 1 } }`,
  `throw new Proxy({}, { get() { throw new Error("no") }, ownKeys() { for (;;); } })`,
  `throw undefined`,
  `throw Object.create(null)`,
  `return new Proxy({}, { ownKeys: () => { for (;;); } })`,
  `return { toJSON() { return { toJSON: this.toJSON, a: this } } }`,
  `return await add(new Proxy([], { get: (_, key) => key === "length" ? 2 ** 40 : 1 }))`,
  `for (;;) add([1])`,
  `for (;;) await add([1])`,
  `await Promise.all(Array.from({ length: 1e5 }, (_, i) => add([i])))`,
  `return await add(["x".repeat(5e6)])`,
  `return await add({ toJSON: () => add({ toJSON: () => 1 }) })`,
  `async function* g() { for (;;) yield await null }; for await (const _ of g());`,
  `async function* g() { try { yield await add([1]) } finally { await new Promise(() => {}) } }; for await (const _ of g()) break`,
  `for (;;) console.log("x".repeat(1e5))`,
  `console.log({ toJSON() { for (;;); } })`,
  `new Error().stack.repeat(1e6)`,
  `Error.prepareStackTrace = () => { for (;;); }; throw new Error("x")`,
  `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`,
  `new WeakRef({})`,
  `const m = new Map(); for (let i = 0; ; i++) m.set(i, "x".repeat(i % 1000))`,
  `return [3, 1, 2].sort(() => { for (;;); })`,
  `label: for (;;) { for (;;) continue label }`,
  `return ("x" + "y".repeat(1e6)).replace(/./g, (a) => a.repeat(1e4))`,
  `}); for (;;); (async () => {`,
  "return `${{ toString() { for (;;); } }}`",
  `import fs from "node:fs"`,
  `export default 1`,
  `\u0000 \u2028 }{`,
  `return fail({}).then(() => 1)`
]

/** What a program changes before: the language under it, and what it was given. */
const changes: ReadonlyArray<string> = [
  ``,
  `Object.prototype.then = (resolve) => resolve(1);`,
  `Object.prototype.toJSON = function () { return this };`,
  `Promise.prototype.then = () => {};`,
  `Promise = class { then() {} };`,
  `JSON.stringify = () => { for (;;); };`,
  `JSON.parse = () => ({ __proto__: { admin: true } });`,
  `Array.prototype[Symbol.iterator] = function* () { for (;;) yield 1 };`,
  `Array.prototype.push = () => { throw 1 };`,
  `Object.defineProperty(Object.prototype, "get", { value: () => 1 });`,
  `Object.defineProperty(Object.prototype, "0", { get() { throw 2 }, set() { throw 3 } });`,
  `Function.prototype.call = Function.prototype.apply = () => 7;`,
  `globalThis.add = add.bind(null); delete globalThis.fail;`,
  `Math.random = Date.now = () => NaN; Date = undefined;`,
  `Reflect.defineProperty = () => false; Error = null;`,
  `Object.freeze(globalThis); Object.freeze(Object.prototype);`,
  `String.prototype.toString = () => { for (;;); };`,
  `console.log = console.error = () => { for (;;); };`
]

/** Returns a program made from a number: changes, then one or two deeds. */
export const hostileProgram = (seed: number): string => {
  const next = randomOf(seed)
  const pick = (from: ReadonlyArray<string>): string => from[Math.floor(next() * from.length)] ?? ""
  const first = deeds[seed % deeds.length] ?? ""
  const before = [pick(changes), pick(changes)].join("\n")
  const second = next() < 0.3 ? pick(deeds) : ""
  return next() < 0.5 ? `${before}\n${first}\n${second}` : `${before}\ntry {\n${first}\n} catch {}\n${second}`
}
