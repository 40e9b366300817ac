/**
 * Text from outside, made safe to print (S-19, W-30).
 *
 * Nothing that moves the cursor, sets a colour, reverses the direction or hides
 * itself is left: such characters are shown as escapes.
 */

/** Shows control and invisible characters as escapes. */
export const visible = (text: string): string => (invisible.test(text) ? text.replace(everyInvisible, escape) : text)

/** Like `visible`, in double quotes, on one line; nothing inside can end the quotes. */
export const quote = (text: string): string => `"${visible(text.replace(/["\\]/g, (char) => `\\${char}`))}"`

const escape = (char: string): string => {
  switch (char) {
    case "\n":
      return "\\n"
    case "\r":
      return "\\r"
    case "\t":
      return "\\t"
    default:
      return `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`
  }
}

// Controls, format characters (direction, zero width, tags), line and paragraph separators, lone surrogates, the fillers
// that print as nothing, and the selectors that only ever hide text.
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u115f\u1160\u17b4\u17b5\u3164\uffa0]|\u034f|[\u{e0100}-\u{e01ef}]/u
const everyInvisible = new RegExp(invisible, "gu")
