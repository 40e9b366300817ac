// Marks the calls that make the values of a module as pure, so that a bundler drops those whose value is not used. The
// package declares that its modules have no side effects, but a bundler believes that of whole files only.

import { parseAst } from "rolldown/parseAst"

const mark = "/* @__PURE__ */ "

/** Adds the positions of calls in an expression that run while its module is loaded. */
const collect = (node, positions) => {
  if (node === null || typeof node !== "object") return
  if (node.type === "FunctionExpression" || node.type === "ArrowFunctionExpression") return
  if (node.type === "CallExpression" || node.type === "NewExpression") positions.add(node.start)
  for (const part of Object.values(node)) collect(part, positions)
}

/** Adds those of a class: its parent and its static fields. */
const collectClass = ({ body, superClass }, positions) => {
  collect(superClass, positions)
  for (const member of body.body) if (member.static && member.type === "PropertyDefinition") collect(member.value, positions)
}

/** Returns the code of a module with its calls marked. No line moves. */
export const markCalls = (code) => {
  const positions = new Set()
  for (const statement of parseAst(code).body) {
    if (statement.type === "VariableDeclaration") for (const { init } of statement.declarations) collect(init, positions)
    if (statement.type === "ClassDeclaration") collectClass(statement, positions)
  }
  const starts = [0, ...[...positions].sort((a, b) => a - b)]
  return starts.map((start, index) => (index === 0 ? "" : mark) + code.slice(start, starts[index + 1])).join("")
}
