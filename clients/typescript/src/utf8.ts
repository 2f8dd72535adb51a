/** Decodes UTF-8 piece by piece, for platforms without `TextDecoder` such as mini-programs. */
export class Utf8Decoder {
  private pending: number[] = [];

  decode(bytes: Uint8Array): string {
    let text = "";
    for (const byte of bytes) {
      if (byte < 0x80) {
        text += this.flush() + String.fromCharCode(byte);
      } else if (byte >= 0xc0) {
        text += this.flush();
        this.pending = [byte];
      } else if (this.pending.length > 0) {
        this.pending.push(byte);
        if (this.pending.length === lengthOf(this.pending[0]!)) {
          text += characterOf(this.pending);
          this.pending = [];
        }
      } else {
        text += "\ufffd";
      }
    }
    return text;
  }

  /** Ends a character that is cut off. */
  private flush(): string {
    if (this.pending.length === 0) return "";
    this.pending = [];
    return "\ufffd";
  }
}

function lengthOf(first: number): number {
  return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

function characterOf(bytes: number[]): string {
  const mask = [0, 0, 0x1f, 0x0f, 0x07][bytes.length] ?? 0;
  const code = bytes.slice(1).reduce((code, byte) => (code << 6) | (byte & 0x3f), bytes[0]! & mask);
  return code > 0x10ffff ? "\ufffd" : String.fromCodePoint(code);
}
