// The only source of the target whose precompiled headers the tests share (tests/CMakeLists.txt).
