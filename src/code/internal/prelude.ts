/**
 * The code that runs in an interpreter before a program: its functions, its console, its time and its chance.
 *
 * A program may change every global that it sees, but what this code uses is taken before. All that it changes in here
 * concerns only itself.
 */

/** An expression: a function of the facts and functions of the host, which returns the functions that the host calls. */
export const prelude = `((now, seed, names, send, print, done) => {
  "use strict"
  const { stringify, parse } = JSON
  const { apply, construct, defineProperty, deleteProperty } = Reflect
  const { then } = Promise.prototype
  const { toString } = Date.prototype
  const [Eventual, Failure, Instant, Facade, text] = [Promise, Error, Date, Proxy, String]
  const { imul } = Math
  const waiting = { __proto__: null }
  const set = (target, name, value) => defineProperty(target, name, { value, writable: true, configurable: true })
  let calls = 0

  let state = seed | 0
  set(Math, "random", () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  })

  const Fixed = new Facade(Instant, {
    __proto__: null,
    construct: (type, given, made) => construct(type, given.length === 0 ? [now] : given, made),
    apply: () => apply(toString, new Instant(now), [])
  })
  set(Instant, "now", () => now)
  set(Instant.prototype, "constructor", Fixed)
  set(globalThis, "Date", Fixed)
  for (const name of ["performance", "WeakRef", "FinalizationRegistry", "SharedArrayBuffer", "Atomics"]) {
    deleteProperty(globalThis, name)
  }

  const describe = (error) => {
    const read = (name) => {
      try {
        const value = error[name]
        return typeof value === "string" ? value : ""
      } catch {
        return ""
      }
    }
    const isObject = typeof error === "object" && error !== null
    try {
      return stringify({
        __proto__: null,
        name: isObject ? read("name") : "",
        message: isObject ? read("message") : text(error),
        stack: isObject ? read("stack") : ""
      })
    } catch {
      return "{}"
    }
  }

  const show = (value) => {
    if (typeof value === "string") return value
    try {
      return stringify(value) ?? text(value)
    } catch {
      return "?"
    }
  }
  const log = (...values) => {
    let line = ""
    for (let index = 0; index < values.length; index++) line += (index === 0 ? "" : " ") + show(values[index])
    print(line)
  }
  set(globalThis, "console", { log, info: log, warn: log, error: log, debug: log })

  for (const name of names) {
    set(globalThis, name, (input) => new Eventual((resolve, reject) => {
      const failure = new Failure()
      const json = input === undefined ? "{}" : stringify(input)
      if (json === undefined) throw new Failure(name + ": its input is not JSON")
      send(name, json, failure.stack)
      waiting[calls++] = { resolve, reject, failure }
    }))
  }

  const ended = (value) => {
    let json
    try {
      json = stringify(value) ?? "null"
    } catch (error) {
      return done(false, describe(error))
    }
    done(true, json)
  }

  return {
    run: (main) => {
      apply(then, main(), [ended, (error) => done(false, describe(error))])
    },
    settle: (id, isValue, given, name) => {
      const { failure, reject, resolve } = waiting[id]
      delete waiting[id]
      if (isValue) return resolve(parse(given))
      set(failure, "name", name)
      set(failure, "message", given)
      reject(failure)
    }
  }
})`
