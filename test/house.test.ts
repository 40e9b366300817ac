/**
 * The rooms of the house: who may import whom. The table in AGENTS.md decides.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { clientInfo } from "../src/mcp/internal/handshake.ts"
import {
  applications,
  circles,
  climbing,
  doors,
  filesIn,
  imports,
  isHeart,
  placeOf,
  repeatedNames,
  rooms,
  root,
  src
} from "./support/house.ts"

describe("the house", () => {
  it("has its imports read from the sources", () => {
    assert.isAbove(imports.length, 200)
    assert.isAbove(rooms.length, 10)
    assert.isTrue(imports.some(({ from, to }) => from === "Kernel.ts" && to === "Provider.ts"))
  })

  it("gives every public module of the heart a room", () => {
    const homeless = filesIn(src).filter((file) => isHeart(file) && file !== "index.ts" && placeOf(file) === undefined)
    assert.deepStrictEqual(homeless, [])
  })

  it("has a line in AGENTS.md for every folder, and no other", () => {
    const folders = (path: string) =>
      readdirSync(join(src, path), { withFileTypes: true }).flatMap((entry) =>
        entry.isDirectory() ? [entry.name] : []
      )
    assert.sameMembers(folders("."), ["internal", "kit", "store-kit", ...doors, ...applications])
    const known = rooms.map(({ name }) => name)
    assert.deepStrictEqual(
      folders("internal").filter((name) => !known.includes(name)),
      []
    )
  })

  it("lets a room import itself and earlier rooms, types included", () => {
    assert.deepStrictEqual(climbing(), [])
  })

  it("keeps the heart free of doors and of the application", () => {
    const outside = imports.filter(({ from, to }) => isHeart(from) && !isHeart(to))
    assert.deepStrictEqual(outside, [])
  })

  it("keeps the inside of the heart closed: doors and applications import public modules, kit and store-kit", () => {
    const isClosed = (file: string) => /^(?:store-kit\/)?internal\//.test(file)
    assert.deepStrictEqual(
      imports.filter(({ from, to }) => !isHeart(from) && isClosed(to)),
      []
    )
  })

  it("lets kit import nothing but effect and kit, types included", () => {
    assert.deepStrictEqual(
      imports.filter(({ from, to }) => placeOf(from) === "kit" && placeOf(to) !== "kit"),
      []
    )
  })

  it("keeps doors independent of each other", () => {
    const isDoor = (file: string) => !isHeart(file) && !applications.includes(placeOf(file) ?? "")
    const wrong = imports.filter(({ from, to }) => isDoor(from) && !isHeart(to) && placeOf(to) !== placeOf(from))
    assert.deepStrictEqual(wrong, [])
  })

  it("lets applications import only public modules of doors and of each other", () => {
    const isInside = (file: string) => file.includes("/internal/") || file.startsWith("studio/page/")
    const wrong = imports.filter(
      ({ from, to }) => applications.includes(placeOf(from) ?? "") && isInside(to) && placeOf(to) !== placeOf(from)
    )
    assert.deepStrictEqual(wrong, [])
  })

  it("lets an application import those before it, and no other", () => {
    const rank = (file: string) => applications.indexOf(placeOf(file) ?? "")
    assert.deepStrictEqual(
      imports.filter(({ from, to }) => rank(from) >= 0 && rank(to) > rank(from)),
      []
    )
  })

  it("has no circle of modules", () => {
    assert.deepStrictEqual(circles(imports.filter(({ typesOnly }) => !typesOnly)), [])
  })

  it("has no circle of modules in the heart, types included", () => {
    assert.deepStrictEqual(circles(imports.filter(({ from, to }) => isHeart(from) && isHeart(to))), [])
  })

  it("has no circle of modules in the command line, types included", () => {
    const isCommandLine = ({ from, to }: { readonly from: string; readonly to: string }) =>
      placeOf(from) === "cli" && placeOf(to) === "cli"
    assert.deepStrictEqual(circles(imports.filter(isCommandLine)), [])
  })

  it("has no base name twice", () => {
    assert.deepStrictEqual(repeatedNames(), [])
  })

  it("cites no rule of a specification in the sources: comments say what they mean", () => {
    const citing = filesIn(src).filter((file) =>
      /\b(?:BP|W|DR|AC|CP|R|S)-\d+\b/.test(readFileSync(join(src, file), "utf8"))
    )
    assert.deepStrictEqual(citing, [])
  })

  it("imports nothing but effect in the heart", () => {
    const foreign = filesIn(src)
      .filter(isHeart)
      .flatMap((file) => {
        const text = readFileSync(join(src, file), "utf8").replace(/^ \*.*$/gm, "")
        return [...text.matchAll(/from\s+"([^."][^"]*)"/g)]
          .map((match) => match[1] ?? "")
          .filter((name) => name !== "effect" && !name.startsWith("effect/"))
          .map((name) => `${file}: ${name}`)
      })
    assert.deepStrictEqual(foreign, [])
  })

  it("gives every public module a path of its own, and internal modules none", () => {
    const isClosed = (file: string) => /(^|\/)(internal\/|index\.ts$)|^(?:cli|kit)\/|^studio\/page\//.test(file)
    const script = `
      const open = []
      for (const file of JSON.parse(process.argv[1])) {
        try {
          if (import.meta.resolve("kernai/" + file.slice(0, -3)).endsWith("/src/" + file)) open.push(file)
        } catch (error) {
          if (error.code !== "ERR_PACKAGE_PATH_NOT_EXPORTED") throw error
        }
      }
      console.log(JSON.stringify(open))`
    const all = filesIn(src)
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ["--conditions=kernai-source", "--input-type=module", "--eval", script, JSON.stringify(all)],
      { cwd: root, encoding: "utf8" }
    )
    assert.strictEqual(stderr, "")
    const open = all.filter((file) => !isClosed(file))
    assert.isAbove(open.length, 60)
    assert.deepStrictEqual(JSON.parse(stdout), open)
  })

  it("reaches the sources from the acceptance by their paths, since that is a package of its own", () => {
    const scripts = readdirSync(join(root, "accept"), { recursive: true, encoding: "utf8" }).filter(
      (file) => file.endsWith(".ts") && !file.includes("node_modules")
    )
    assert.isAbove(scripts.length, 10)
    assert.deepStrictEqual(
      scripts.filter((file) => /^(?:import|\}) .*from "kernai/m.test(readFileSync(join(root, "accept", file), "utf8"))),
      []
    )
  })

  it("reports its package version to servers", () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
    assert.strictEqual(clientInfo.version, version)
  })

  it("has no registry address in the lock files", () => {
    const locks = ["package-lock.json", "bench/package-lock.json"]
    const resolved = locks.filter((file) => /"resolved": *"http/.test(readFileSync(join(root, file), "utf8")))
    assert.deepStrictEqual(resolved, [], relative(root, src))
  })
})
