//! Masks what a provider's words could reveal of a recipient or a code.

/// Stands for masked text.
const MASK: &str = "***";
/// Digits of the longest number that is shown, such as the limit in `Permits:10`.
const LONGEST_NUMBER: usize = 3;
/// Characters between the digits of one number.
const WIDEST_GAP: usize = 4;

/// Masks email addresses, the recipient's name and domain, and all long numbers, also with separators.
pub fn mask(words: &str, address: &str) -> String {
    let without_addresses: Vec<_> = words.split(' ').map(|word| if is_address(word) { MASK } else { word }).collect();
    let mut masked = without_addresses.join(" ");
    if let Some((name, domain)) = address.rsplit_once('@') {
        masked = mask_word(&masked, domain);
        masked = mask_word(&masked, name);
    }
    mask_numbers(&masked)
}

/// Returns true if a provider's identifier contains neither the recipient nor the code.
pub fn is_harmless(identifier: &str, address: &str, code: &str) -> bool {
    let identifier = identifier.to_lowercase();
    let recipient = match address.rsplit_once('@') {
        Some((name, _)) => name.to_lowercase(),
        // Without a country code, which a provider may leave out.
        None => address.chars().skip(address.chars().count().saturating_sub(7)).collect(),
    };
    !identifier.contains(code) && !identifier.contains(&recipient)
}

fn is_address(word: &str) -> bool {
    word.contains(['@', '＠']) || word.to_ascii_lowercase().contains("%40")
}

/// Masks a word wherever it stands alone, in any case.
fn mask_word(text: &str, word: &str) -> String {
    let is_edge = |character: Option<char>| character.is_none_or(|character| !character.is_alphanumeric());
    let (mut masked, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(character) = rest.chars().next() {
        let is_found = rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
            && is_edge(masked.chars().next_back())
            && is_edge(rest[word.len()..].chars().next());
        let length = if is_found { word.len() } else { character.len_utf8() };
        masked.push_str(if is_found { MASK } else { &rest[..length] });
        rest = &rest[length..];
    }
    masked
}

/// Masks numbers of more than a few digits. Separators between digits do not end a number.
fn mask_numbers(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let is_digit = |index: usize| characters.get(index).is_some_and(|character| character.is_numeric());
    let (mut masked, mut index) = (String::with_capacity(text.len()), 0);
    while index < characters.len() {
        if !is_digit(index) {
            masked.push(characters[index]);
            index += 1;
            continue;
        }
        let (start, mut digits, mut end) = (index, 0, index);
        while is_digit(end) {
            digits += 1;
            end += 1;
            let gap = characters[end..].iter().take_while(|character| is_separator(**character)).count();
            if gap <= WIDEST_GAP && is_digit(end + gap) {
                end += gap;
            }
        }
        if digits > LONGEST_NUMBER {
            masked.push_str(MASK);
        } else {
            masked.extend(&characters[start..end]);
        }
        index = end;
    }
    masked
}

fn is_separator(character: char) -> bool {
    !character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMAIL: &str = "li.ming@reeds.example";

    #[test]
    fn numbers_are_masked_in_any_spelling() {
        for number in
            ["13800138000", "+86 138-0013-8000", "138****8000", "１３８００１３８０００", "1 2 3 4 5 6", "2468"]
        {
            assert!(!mask(&format!("[{number}] refused"), "13800138000").contains(['0', '4', '８']), "{number}");
        }
        assert_eq!(mask("触发分钟级流控Permits:1", "13800138000"), "触发分钟级流控Permits:1");
        assert_eq!(mask("5.1.1 unknown, see 120", EMAIL), "5.1.1 unknown, see 120");
        assert_eq!(mask("queued as A1B2C3D4E5", EMAIL), "queued as A1B2C3D4E5");
    }

    #[test]
    fn addresses_are_masked_in_any_spelling() {
        for words in [
            "5.1.1 <li.ming@reeds.example>: unknown",
            "user LI.MING unknown",
            "no mailbox li.ming at Reeds.Example here",
            "li.ming%40reeds.example",
            "bounce+li.ming=reeds.example",
        ] {
            let masked = mask(words, EMAIL).to_lowercase();
            assert!(!masked.contains("ming") && !masked.contains("reeds"), "{masked}");
        }
        assert_eq!(mask("another liming", EMAIL), "another liming");
        assert_eq!(mask("a€é a", "€é@example.com"), "a€é a");
    }

    #[test]
    fn identifiers_with_the_recipient_or_the_code_are_not_harmless() {
        assert!(is_harmless("9006197469364984^0", "13800138000", "246810"));
        assert!(!is_harmless("86138-13800138000", "13800138000", "246810"));
        assert!(!is_harmless("x246810", "13800138000", "246810"));
        assert!(!is_harmless("Li.Ming-7", EMAIL, "24681012"));
    }
}
