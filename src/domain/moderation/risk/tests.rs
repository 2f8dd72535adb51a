use super::*;

#[test]
fn the_files_have_no_faults() {
    assert_eq!(Rules::read(&RULES).1, Vec::<String>::new());
    assert_eq!(Model::read(WEIGHTS).err(), None);
}
